package main

import (
	"fmt"
	"os"
)

func main() {
	file, err := os.Open("in/numbers.txt")
	if err != nil {
		panic(err)
	}
	sum, number := 0, 0
	for {
		if _, err := fmt.Fscan(file, &number); err != nil {
			break
		}
		sum += number
	}
	if err := os.WriteFile("sum.txt", []byte(fmt.Sprintln(sum)), 0o644); err != nil {
		panic(err)
	}
}
