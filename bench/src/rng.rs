//! Pseudo-random numbers that are the same in every run.

/// An xorshift generator.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn seeded(seed: usize) -> Self {
        let spread = (seed as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut rng = Self(spread | 1);
        // The first numbers of adjacent seeds are similar.
        for _ in 0..8 {
            rng.below(1);
        }
        rng
    }

    /// A number in `0..end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // The high bits are the better ones; `end` is small enough for the bias not to matter.
        (self.0 >> 33) as usize % end
    }

    pub(crate) fn shuffle(&mut self, list: &mut [usize]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffling_keeps_every_case() {
        let mut order: Vec<usize> = (0..8).collect();
        let mut rng = Rng::seeded(1);
        let mut seen_first = std::collections::BTreeSet::new();
        for _ in 0..200 {
            rng.shuffle(&mut order);
            seen_first.insert(order[0]);
        }
        assert_eq!(seen_first.len(), 8);
        order.sort_unstable();
        assert_eq!(order, (0..8).collect::<Vec<_>>());
    }
}
