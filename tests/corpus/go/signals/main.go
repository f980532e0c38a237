// A channel of signals, a context that a signal cancels, one that is ignored, a child that is stopped.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	self, _ := os.FindProcess(os.Getpid())
	heard := make(chan os.Signal, 4)
	signal.Notify(heard, syscall.SIGUSR1, syscall.SIGHUP)
	for _, each := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGHUP} {
		if err := self.Signal(each); err != nil {
			panic(err)
		}
		fmt.Println("heard", <-heard)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	_ = self.Signal(os.Interrupt)
	<-ctx.Done()
	fmt.Println(ctx.Err())
	stop()

	signal.Ignore(syscall.SIGTERM)
	_ = self.Signal(syscall.SIGTERM)
	fmt.Println("ignored:", signal.Ignored(syscall.SIGTERM))

	child := exec.Command("/bin/sh", "-c", "trap 'exit 9' USR2; echo ready; while :; do sleep 0.01; done")
	ready, _ := child.StdoutPipe()
	if err := child.Start(); err != nil {
		panic(err)
	}
	_, _ = ready.Read(make([]byte, 16))
	_ = child.Process.Signal(syscall.SIGUSR2)
	fmt.Println(child.Wait())
}
