fn digit_sum(n: u64) -> u64 {
    n.checked_rem(n).unwrap()
}
