// Names a command for `go generate`. Building must not run it: what it would write is not there when the
// program looks.
package main

//go:generate sh -c "echo generated > /work/generated.go; echo generated > /tmp/generated; sleep 1000"

import (
	"fmt"
	"os"
)

func main() {
	for _, path := range []string{"generated.go", "/tmp/generated"} {
		_, err := os.Stat(path)
		fmt.Println(os.IsNotExist(err))
	}
}
