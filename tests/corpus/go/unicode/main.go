// Bytes and runes, case and classes, bad bytes, and the name of a file.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

func reverse(text string) string {
	runes := []rune(text)
	for left, right := 0, len(runes)-1; left < right; left, right = left+1, right-1 {
		runes[left], runes[right] = runes[right], runes[left]
	}
	return string(runes)
}

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(len(lines.Text()), utf8.RuneCountInString(lines.Text()), reverse(lines.Text()))
	}
	for index, letter := range "aé中" {
		fmt.Printf("%d:%c:%U ", index, letter, letter)
	}
	fmt.Println()
	fmt.Println(strings.ToUpper("straße ζεύς"), strings.EqualFold("ΣΊΣΥΦΟΣ", "σίσυφος"), strings.ToTitle("ǆ"))
	fmt.Println(unicode.Is(unicode.Cyrillic, 'ж'), unicode.IsUpper('Ω'), unicode.IsDigit('٣'), unicode.IsSpace('\u00a0'))
	bad := "a\xffb"
	fmt.Printf("%v %q %+q %x\n", utf8.ValidString(bad), bad, "ü🚀", strings.ToValidUTF8(bad, "?"))
	fmt.Printf("%04x %d\n", utf16.Encode([]rune("👩‍🚀")), utf8.RuneLen('🚀'))
	größe := len("größe")
	fmt.Println(größe, "é" == "e\u0301", strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, "e\u0301te\u0301"))
	if err := os.WriteFile("grüße-世界.txt", []byte("Привет, мир\n"), 0o644); err != nil {
		panic(err)
	}
	entries, _ := os.ReadDir(".")
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".txt") {
			fmt.Println(entry.Name())
		}
	}
}
