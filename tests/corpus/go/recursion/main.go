// A stack that grows with the recursion, closures that call themselves, trees.
package main

import "fmt"

func depth(number int) int {
	if number == 0 {
		return 0
	}
	return 1 + depth(number-1)
}

func ackermann(m, n int) int {
	switch {
	case m == 0:
		return n + 1
	case n == 0:
		return ackermann(m-1, 1)
	default:
		return ackermann(m-1, ackermann(m, n-1))
	}
}

type tree struct {
	left, right *tree
	value       int
}

func (t *tree) insert(value int) *tree {
	if t == nil {
		return &tree{value: value}
	}
	if value < t.value {
		t.left = t.left.insert(value)
	} else {
		t.right = t.right.insert(value)
	}
	return t
}

func (t *tree) walk(visit func(int)) {
	if t != nil {
		t.left.walk(visit)
		visit(t.value)
		t.right.walk(visit)
	}
}

func main() {
	fmt.Println(depth(500000), ackermann(2, 300), ackermann(3, 5))
	var fibonacci func(int) int
	known := map[int]int{}
	fibonacci = func(n int) int {
		if n < 2 {
			return n
		}
		if _, done := known[n]; !done {
			known[n] = fibonacci(n-1) + fibonacci(n-2)
		}
		return known[n]
	}
	fmt.Println(fibonacci(90))
	var root *tree
	for _, value := range []int{5, 2, 8, 1, 9, 3} {
		root = root.insert(value)
	}
	root.walk(func(value int) { fmt.Print(value, " ") })
	fmt.Println()
}
