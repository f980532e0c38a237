// A variable of a hundred gigabytes with one element that is not zero, so that all of it is in the
// program.
package main

import "fmt"

var giant = [100 << 30]byte{1 << 20: 1}

func main() {
	fmt.Println(giant[len(giant)-1])
}
