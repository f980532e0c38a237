package main

import "fmt"

func main() {
	for {
		fmt.Println("again and again")
	}
}
