// Children: input and output, exit codes, a pipeline, a deadline, a program that is not there.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

func main() {
	sorter := exec.Command("sort", "-r")
	sorter.Stdin = strings.NewReader("b\na\nc\n")
	output, err := sorter.Output()
	fmt.Printf("%q %v\n", output, err)

	_, err = exec.Command("/bin/sh", "-c", "echo bye >&2; exit 7").Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		fmt.Printf("%d %q\n", failed.ExitCode(), failed.Stderr)
	}

	first, second := exec.Command("seq", "1", "3000"), exec.Command("wc", "-l")
	second.Stdin, _ = first.StdoutPipe()
	var count bytes.Buffer
	second.Stdout = &count
	for _, command := range []*exec.Cmd{first, second} {
		if err := command.Start(); err != nil {
			panic(err)
		}
	}
	fmt.Println(second.Wait(), first.Wait(), strings.TrimSpace(count.String()))

	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	slow := exec.CommandContext(ctx, "sleep", "60")
	err = slow.Run()
	status := slow.ProcessState.Sys().(syscall.WaitStatus)
	fmt.Println(err, status.Signaled(), ctx.Err())

	_, err = exec.LookPath("no-such-program")
	fmt.Println(errors.Is(err, exec.ErrNotFound))
	greeting := exec.Command("/bin/sh", "-c", "echo $GREETING from $(basename $PWD)")
	greeting.Env, greeting.Dir = []string{"GREETING=hello"}, "/usr"
	output, _ = greeting.CombinedOutput()
	fmt.Print(string(output))
}
