package main

import (
	_ "embed"
	"fmt"

	"example.com/money"
)

//go:embed greeting.txt
var greeting string

func main() { fmt.Print(money.Format(7), " ", greeting) }
