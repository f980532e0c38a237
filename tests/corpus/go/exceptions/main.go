// Errors that wrap others, panics that are recovered, and the order of what is deferred.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
)

type outOfStock struct{ wanted int }

func (e *outOfStock) Error() string { return strconv.Itoa(e.wanted) + " wanted" }

var errClosed = errors.New("the shop is closed")

func order(count int, open bool) (sold int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("order of %d: %w", count, err)
		}
	}()
	if !open {
		return 0, errClosed
	}
	if count > 3 {
		return 0, &outOfStock{count}
	}
	return count, nil
}

func recovered(action func()) (message string) {
	defer func() {
		if cause := recover(); cause != nil {
			message = fmt.Sprint("recovered: ", cause)
		}
	}()
	action()
	return "no panic"
}

func main() {
	_, err := order(5, true)
	var short *outOfStock
	fmt.Println(err, errors.As(err, &short), short.wanted, errors.Is(err, errClosed))
	_, err = order(1, false)
	fmt.Println(err, errors.Is(err, errClosed))
	_, err = os.Open("/no/such/file")
	fmt.Println(err, errors.Is(err, fs.ErrNotExist), errors.Is(errors.Join(err, errClosed), errClosed))
	for turn := 0; turn < 3; turn++ {
		defer fmt.Println("deferred", turn)
	}
	var empty []int
	var nothing *outOfStock
	var unmade map[string]int
	fmt.Println(recovered(func() { fmt.Println(empty[len(os.Args)]) }))
	fmt.Println(recovered(func() { fmt.Println(nothing.wanted) }))
	fmt.Println(recovered(func() { unmade["a"] = 1 }))
	fmt.Println(recovered(func() { fmt.Println(any("text").(int)) }))
	fmt.Println(recovered(func() {
		defer func() { panic(fmt.Sprint("second after ", recover())) }()
		panic("first")
	}))
	fmt.Println(recovered(func() {}))
}
