// Sends itself a signal for which it has no handler.
package main

import (
	"fmt"
	"syscall"
)

func main() {
	fmt.Println("before")
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		panic(err)
	}
	select {}
}
