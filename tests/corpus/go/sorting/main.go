// A large sort, a stable one, orders of our own, a heap, binary search.
package main

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"sort"
	"strings"
)

type person struct {
	name string
	age  int
}

type byLength []string

func (b byLength) Len() int           { return len(b) }
func (b byLength) Less(i, j int) bool { return len(b[i]) < len(b[j]) }
func (b byLength) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }

type smallest []int

func (s smallest) Len() int           { return len(s) }
func (s smallest) Less(i, j int) bool { return s[i] < s[j] }
func (s smallest) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *smallest) Push(value any)    { *s = append(*s, value.(int)) }
func (s *smallest) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

func main() {
	numbers := make([]uint32, 300000)
	state := uint32(12345)
	for index := range numbers {
		state = state*1664525 + 1013904223
		numbers[index] = state
	}
	slices.Sort(numbers)
	position, found := slices.BinarySearch(numbers, state)
	fmt.Println(slices.IsSorted(numbers), found, numbers[position] == state)

	people := []person{{"Ada", 36}, {"Bo", 24}, {"Cy", 36}, {"Di", 24}, {"Ed", 30}}
	slices.SortStableFunc(people, func(a, b person) int { return cmp.Compare(a.age, b.age) })
	fmt.Println(people)
	slices.SortFunc(people, func(a, b person) int {
		return cmp.Or(-cmp.Compare(a.age, b.age), strings.Compare(b.name, a.name))
	})
	fmt.Println(people)

	words := byLength{"elephant", "ox", "cat", "ape", "hippo"}
	sort.Stable(words)
	fmt.Println(words, sort.SearchInts([]int{1, 3, 5, 7}, 4))
	queue := &smallest{5, 2, 8}
	heap.Init(queue)
	heap.Push(queue, 1)
	for queue.Len() > 0 {
		fmt.Print(heap.Pop(queue), " ")
	}
	fmt.Println(map[string]int{"b": 2, "a": 1, "c": 3})
}
