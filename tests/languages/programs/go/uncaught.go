package main

import "fmt"

func main() {
	fmt.Println("before")
	panic("out of stock")
}
