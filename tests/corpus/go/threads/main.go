// Goroutines under a mutex, an atomic, a wait group, a once and a pool that runs in parallel.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

func main() {
	var group sync.WaitGroup
	var lock sync.Mutex
	var calls atomic.Int64
	var once sync.Once
	counts := map[int]int{}
	for worker := 0; worker < 50; worker++ {
		group.Add(1)
		go func(worker int) {
			defer group.Done()
			once.Do(func() { fmt.Println("only once") })
			for turn := 0; turn < 200; turn++ {
				calls.Add(1)
				lock.Lock()
				counts[worker%5]++
				lock.Unlock()
				runtime.Gosched()
			}
		}(worker)
	}
	group.Wait()
	fmt.Println(calls.Load(), counts)

	condition := sync.NewCond(&lock)
	ready := false
	done := make(chan string)
	go func() {
		lock.Lock()
		for !ready {
			condition.Wait()
		}
		lock.Unlock()
		done <- "woken"
	}()
	lock.Lock()
	ready = true
	condition.Broadcast()
	lock.Unlock()
	fmt.Println(<-done)

	many := make(chan int)
	for number := 0; number < 10000; number++ {
		go func(number int) { many <- number }(number)
	}
	sum := 0
	for range 10000 {
		sum += <-many
	}
	fmt.Println(sum)
}
