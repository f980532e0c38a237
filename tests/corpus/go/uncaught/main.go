// A panic that nobody recovers, in a goroutine that is not the first.
package main

import "fmt"

func main() {
	defer fmt.Println("deferred in main, and never printed")
	fmt.Println("before")
	wait := make(chan struct{})
	go func() {
		defer fmt.Println("deferred in the goroutine")
		var counts map[string]int
		counts["boom"]++
		close(wait)
	}()
	<-wait
}
