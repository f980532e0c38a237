// Would be compiled by a downloaded toolchain; see go.mod.
package main

func main() {}
