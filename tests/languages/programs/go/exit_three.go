package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Println("before")
	os.Exit(3)
}
