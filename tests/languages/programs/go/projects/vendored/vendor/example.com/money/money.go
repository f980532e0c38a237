// Package money formats.
package money

import "fmt"

// Format writes an amount.
func Format(amount int) string { return fmt.Sprintf("%d kr", amount) }
