package main

func name() string { return "shop" }
