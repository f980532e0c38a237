// Has the go command start a C compiler with flags of the program's choice: a plugin to load, and a
// header of the host to read. CANARY is replaced by a path.
package main

// #cgo CFLAGS: -fplugin=/work/plugin.so -include CANARY
// #cgo LDFLAGS: -Wl,-T,CANARY
// #cgo pkg-config: --define-prefix CANARY
// #include "CANARY"
// int answer(void) { return 42; }
import "C"

import "fmt"

func main() {
	fmt.Println(C.answer())
}
