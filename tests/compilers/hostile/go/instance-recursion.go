// A generic function that calls itself with longer types, along two ways: the compiler has to notice that
// there is no end to the instances.
package main

type pair[T, U any] struct {
	left  T
	right U
}

func grow[T, U any](left int) int {
	if left == 0 {
		return 1
	}
	return grow[pair[T, U], U](left-1) + grow[T, pair[T, U]](left-1)
}

func main() {
	println(grow[int, string](30))
}
