// Counts the words of a longer text and prints the most frequent ones, as a filter with an argument.
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

func main() {
	most, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	counts := map[string]int{}
	lines := 0
	for input := bufio.NewScanner(os.Stdin); input.Scan(); lines++ {
		for _, word := range strings.FieldsFunc(input.Text(), func(r rune) bool { return !unicode.IsLetter(r) }) {
			counts[strings.ToLower(word)]++
		}
	}
	words := make([]string, 0, len(counts))
	for word := range counts {
		words = append(words, word)
	}
	slices.SortFunc(words, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	fmt.Println(lines, "lines,", len(words), "different words")
	for _, word := range words[:most] {
		fmt.Printf("%3d %s\n", counts[word], word)
	}
}
