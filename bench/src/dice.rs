//! Numbers that look random and are the same in every run.

/// A small generator.
pub(crate) struct Dice(u64);

impl Dice {
    /// Those of this name.
    pub(crate) fn of(name: usize) -> Self {
        let spread = (name as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut dice = Self(spread | 1);
        // The first numbers of neighbours are alike.
        for _ in 0..8 {
            dice.below(1);
        }
        dice
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // The high bits are the better ones; the list is short enough for the bias not to matter.
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
        let mut dice = Dice::of(1);
        let mut seen_first = std::collections::BTreeSet::new();
        for _ in 0..200 {
            dice.shuffle(&mut order);
            seen_first.insert(order[0]);
        }
        assert_eq!(seen_first.len(), 8);
        order.sort_unstable();
        assert_eq!(order, (0..8).collect::<Vec<_>>());
    }
}
