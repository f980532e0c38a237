// Embeds a file of the host by climbing out of the module and by its absolute path. CANARY is replaced
// by the path.
package main

import (
	_ "embed"
	"fmt"
)

//go:embed ../../../../../../../..CANARY
var climbed string

//go:embed CANARY
var absolute string

func main() {
	fmt.Println(climbed, absolute)
}
