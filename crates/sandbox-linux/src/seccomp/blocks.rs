//! Splits the argument values of a call into blocks, for filter formats with weaker rules.
//!
//! A rule of a container runtime compares each argument once: the bits under a mask with a value.
//! Rules have no order, there is no "none of these", and two comparisons of one argument count as
//! alternatives. So the rules of a call are converted to cells: each is a block of values for some
//! arguments, every call in it has the same outcome, and no two of them overlap.

use super::rules::Condition;

/// All values of an argument whose bits under `mask` are those of `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Block {
    pub(super) argument: usize,
    pub(super) mask: u64,
    pub(super) value: u64,
}

/// Calls with arguments in all these blocks have this outcome; at most one block for each argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell<Outcome> {
    pub(super) blocks: Vec<Block>,
    pub(super) outcome: Outcome,
}

/// What applies if all the conditions hold, and no earlier rule matched.
#[derive(Clone, Debug)]
pub(super) struct Rule<'profile, Outcome> {
    pub(super) conditions: Vec<&'profile Condition>,
    pub(super) outcome: Outcome,
}

/// The cells for these rules. The last rule must have no conditions.
pub(super) fn cells<Outcome: Clone + Eq>(rules: &[Rule<'_, Outcome>]) -> Vec<Cell<Outcome>> {
    let settled = rules.iter().position(|rule| rule.conditions.is_empty());
    let settled = settled.expect("the last rule has no conditions");
    let relevant = &rules[..=settled];
    let conditions = relevant.iter().flat_map(|rule| &rule.conditions);
    let Some(argument) = conditions.map(|condition| condition.argument).min() else {
        let outcome = relevant[0].outcome.clone();
        return vec![Cell { blocks: Vec::new(), outcome }];
    };
    let everything = Block { argument, mask: 0, value: 0 };
    let pieces = cut(relevant, everything).into_iter();
    pieces
        .flat_map(|(block, inside)| inside.into_iter().map(move |cell| cell.within(block)))
        .collect()
}

/// Halves the block until each piece decides every condition on its argument. Returns the pieces
/// with the rules that remain for the other arguments.
fn cut<Outcome: Clone + Eq>(
    rules: &[Rule<'_, Outcome>],
    block: Block,
) -> Vec<(Block, Vec<Cell<Outcome>>)> {
    let conditions = rules.iter().flat_map(|rule| &rule.conditions);
    let open = conditions.filter(|condition| condition.argument == block.argument);
    let Some(bit) = open.filter_map(|condition| block.open_bit(condition)).max() else {
        let left: Vec<_> = rules.iter().filter_map(|rule| rule.within(block)).collect();
        return vec![(block, cells(&left))];
    };
    let mut pieces = cut(rules, Block { mask: block.mask | bit, ..block });
    let upper = cut(rules, Block { mask: block.mask | bit, value: block.value | bit, ..block });
    if let ([(_, below)], [(_, above)]) = (&pieces[..], &upper[..])
        && below == above
    {
        return vec![(block, above.clone())];
    }
    pieces.extend(upper);
    pieces
}

impl Block {
    /// A bit that the condition tests and this block leaves open, if the condition holds for some
    /// values in it and not for others.
    fn open_bit(self, condition: &Condition) -> Option<u64> {
        let left = condition.mask & !self.mask;
        let is_undecided = left != 0 && self.may_hold_one_of(condition);
        is_undecided.then(|| 1 << left.ilog2())
    }

    fn may_hold_one_of(self, condition: &Condition) -> bool {
        let shared = self.mask & condition.mask;
        condition.values.iter().any(|value| (value ^ self.value) & shared == 0)
    }
}

impl<Outcome: Clone> Rule<'_, Outcome> {
    /// What remains of the rule for a block that decides its argument; `None` if it does not match
    /// there.
    fn within(&self, block: Block) -> Option<Self> {
        let (here, elsewhere): (Vec<&Condition>, Vec<&Condition>) =
            self.conditions.iter().partition(|condition| condition.argument == block.argument);
        let holds = here.iter().all(|condition| condition.accepts(block.value));
        holds.then(|| Self { conditions: elsewhere, outcome: self.outcome.clone() })
    }
}

impl<Outcome> Cell<Outcome> {
    fn within(mut self, block: Block) -> Self {
        if block.mask != 0 {
            self.blocks.insert(0, block);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::Membership;
    use super::*;

    fn condition(argument: usize, mask: u64, membership: Membership, values: &[u64]) -> Condition {
        Condition { argument, mask, membership, values: values.iter().copied().collect() }
    }

    fn rule<'a>(conditions: &[&'a Condition], outcome: char) -> Rule<'a, char> {
        Rule { conditions: conditions.to_vec(), outcome }
    }

    #[test]
    fn without_conditions_there_is_one_cell_without_blocks() {
        let made = cells(&[rule(&[], 'a'), rule(&[], 'b')]);
        assert_eq!(made, [Cell { blocks: Vec::new(), outcome: 'a' }]);
    }

    #[test]
    fn every_value_is_in_the_cell_of_its_outcome_and_in_no_other() {
        let small = condition(0, 0xf, Membership::Is, &[1, 2, 5]);
        let other = condition(1, 0x6, Membership::IsNot, &[2]);
        let made = cells(&[rule(&[&small, &other], 'a'), rule(&[&small], 'b'), rule(&[], 'c')]);
        for first in 0..64 {
            for second in 0..16 {
                let arguments = [first, second];
                let holding: Vec<char> = made
                    .iter()
                    .filter(|cell| {
                        let mut blocks = cell.blocks.iter();
                        blocks.all(|block| arguments[block.argument] & block.mask == block.value)
                    })
                    .map(|cell| cell.outcome)
                    .collect();
                let expected = match ([1, 2, 5].contains(&(first & 0xf)), second & 6 == 2) {
                    (true, false) => 'a',
                    (true, true) => 'b',
                    (false, _) => 'c',
                };
                assert_eq!(holding, [expected], "{arguments:?}");
            }
        }
    }

    #[test]
    fn neighbours_with_one_outcome_share_a_cell() {
        let pair = condition(2, 0xff, Membership::Is, &[6, 7]);
        let made = cells(&[rule(&[&pair], 'a'), rule(&[], 'b')]);
        let found: Vec<_> = made.iter().filter(|cell| cell.outcome == 'a').collect();
        let block = Block { argument: 2, mask: 0xfe, value: 6 };
        assert_eq!(found, [&Cell { blocks: vec![block], outcome: 'a' }]);
    }
}
