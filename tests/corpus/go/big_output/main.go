// Half a megabyte through a buffered writer.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for number := 0; number < 10000; number++ {
		fmt.Fprintf(out, "%05d %s %09d\n", number, strings.Repeat("abcdefghij", 4), number*number)
	}
}
