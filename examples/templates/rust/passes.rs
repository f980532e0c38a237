fn digit_sum(n: u64) -> u64 {
    n.to_string().bytes().map(|digit| u64::from(digit - b'0')).sum()
}
