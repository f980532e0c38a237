// Asks for a toolchain that is not there. The go command would download a program from the network and
// run that one from then on.
module victim

go 1.99

toolchain go1.99.9
