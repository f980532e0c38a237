// Prints a constant of the module that go.mod takes from the host.
package main

import (
	"fmt"

	"example.com/stolen"
)

func main() {
	fmt.Println(stolen.Secret)
}
