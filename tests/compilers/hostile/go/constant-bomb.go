// Each constant is sixteen of the one before, and the last one is eight gigabytes of text, which the compiler
// has to know to the letter.
package main

const (
	a = "0123456789abcdef0123456789abcdef"
	b = a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a
	c = b + b + b + b + b + b + b + b + b + b + b + b + b + b + b + b
	d = c + c + c + c + c + c + c + c + c + c + c + c + c + c + c + c
	e = d + d + d + d + d + d + d + d + d + d + d + d + d + d + d + d
	f = e + e + e + e + e + e + e + e + e + e + e + e + e + e + e + e
	g = f + f + f + f + f + f + f + f + f + f + f + f + f + f + f + f
	h = g + g + g + g + g + g + g + g + g + g + g + g + g + g + g + g
)

func main() {
	println(h)
}
