package main

var text string = 42

func main() { println(text) }
