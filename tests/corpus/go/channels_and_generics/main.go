// Channels and select, contexts, generics with constraints, embedding, iterators made of functions.
package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

type number interface{ ~int | ~float64 }

type celsius float64

func sum[T number](values ...T) (total T) {
	for _, value := range values {
		total += value
	}
	return total
}

func mapped[T, R any](values []T, change func(T) R) []R {
	result := make([]R, 0, len(values))
	for _, value := range values {
		result = append(result, change(value))
	}
	return result
}

type stack[T any] struct{ items []T }

func (s *stack[T]) push(item T) { s.items = append(s.items, item) }

type animal interface{ sound() string }
type dog struct{ name string }
type puppy struct {
	dog
	weeks int
}

func (d dog) sound() string    { return d.name + " barks" }
func (p puppy) String() string { return fmt.Sprintf("%s, %d weeks", p.name, p.weeks) }

func sieve(ctx context.Context, in <-chan int, prime int) <-chan int {
	out := make(chan int)
	go func() {
		for {
			select {
			case value := <-in:
				if value%prime != 0 {
					select {
					case out <- value:
					case <-ctx.Done():
						return
					}
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	source := make(chan int)
	go func() {
		for value := 2; ; value++ {
			select {
			case source <- value:
			case <-ctx.Done():
				return
			}
		}
	}()
	var primes []string
	for in := (<-chan int)(source); len(primes) < 10; {
		prime := <-in
		primes = append(primes, fmt.Sprint(prime))
		in = sieve(ctx, in, prime)
	}
	cancel()
	fmt.Println(strings.Join(primes, " "))

	never := make(chan int)
	select {
	case <-never:
		fmt.Println("impossible")
	case <-time.After(10 * time.Millisecond):
		fmt.Println("nothing came")
	}
	closed := make(chan int, 2)
	closed <- 1
	close(closed)
	first, open := <-closed
	second, stillOpen := <-closed
	fmt.Println(first, open, second, stillOpen, len(closed), cap(closed))

	fmt.Println(sum(1, 2, 3), sum[celsius](1.5, 2), mapped([]int{1, 2}, func(n int) string { return strings.Repeat("x", n) }))
	things := stack[animal]{}
	things.push(puppy{dog{"Rex"}, 9})
	fmt.Println(things.items[0].sound(), things.items[0])
	shared := []int{1, 2, 3, 4}
	part := append(shared[:2:2], 99)
	fmt.Println(shared, part, [3]int{1, 2} == [3]int{1, 2, 0})
}
