package main

import (
	"fmt"

	"example.com/shop/internal/prices"
)

func main() { fmt.Println("total", prices.Total(3, 4), name()) }
