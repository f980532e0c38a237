module victim

go 1.21
