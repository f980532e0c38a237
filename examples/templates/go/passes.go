func digitSum(n int) int {
	total := 0
	for ; n > 0; n /= 10 {
		total += n % 10
	}
	return total
}
