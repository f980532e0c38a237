package main

func main() {
	var kept [][]byte
	for {
		piece := make([]byte, 1<<20)
		for at := 0; at < len(piece); at += 4096 {
			piece[at] = 1
		}
		kept = append(kept, piece)
	}
}
