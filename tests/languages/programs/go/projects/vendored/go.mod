module example.com/shop

go 1.21

require example.com/money v1.2.3
