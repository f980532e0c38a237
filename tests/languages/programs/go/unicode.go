package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	line, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	fmt.Println("grüße, 世界")
	fmt.Print(string(line))
	if err := os.WriteFile("ü-文.txt", line, 0o644); err != nil {
		panic(err)
	}
}
