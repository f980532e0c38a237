/// How much each of several owners may keep, so that all together keep no more than `bound`: those that have
/// less keep all of it, and the others share what is left in equal parts.
pub(crate) fn fair_share(mut totals: Vec<u64>, bound: u64) -> u64 {
    totals.sort_unstable();
    let mut left = bound;
    for (place, total) in totals.iter().enumerate() {
        let share = left / (totals.len() - place) as u64;
        if *total > share {
            return share;
        }
        left -= total;
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_have_little_keep_it_and_the_others_share_the_rest() {
        assert_eq!(fair_share(vec![], 0), u64::MAX);
        assert_eq!(fair_share(vec![10, 20], 30), u64::MAX);
        assert_eq!(fair_share(vec![10, 1000], 100), 90);
        assert_eq!(fair_share(vec![1000, 10, 500], 110), 50);
        assert_eq!(fair_share(vec![1000, 900, 500], 90), 30);
        assert_eq!(fair_share(vec![5], 0), 0);
    }
}
