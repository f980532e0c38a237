package main

import (
	"fmt"
	"io"
)

func main() {
	sum, number := 0, 0
	for {
		if _, err := fmt.Scan(&number); err == io.EOF {
			break
		}
		sum += number
	}
	fmt.Println(sum)
}
