// Package prices adds.
package prices

// Total is the sum.
func Total(prices ...int) (total int) {
	for _, price := range prices {
		total += price
	}
	return total
}
