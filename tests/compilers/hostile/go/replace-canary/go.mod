// Takes a module from a directory of the host. MODULE is replaced by its path.
module victim

go 1.21

require example.com/stolen v0.0.0

replace example.com/stolen => MODULE
