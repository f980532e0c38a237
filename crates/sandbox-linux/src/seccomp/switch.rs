//! Dispatches on many values with few instructions.
//!
//! A value's range is found by binary search: each step is one comparison, so that a filter of 470
//! calls makes about seven comparisons instead of hundreds. Consecutive numbers with the same
//! target share a range. Often a single number differs within a range, like `ioctl` among the file
//! calls. Splitting the range would take two borders; testing for the number takes one instruction.
//! So ranges are first grouped into stretches with one common target and a few exceptions, with
//! minimal cost, and the search runs over the stretches.

use super::assembler::{Assembler, Label, Test};

/// Maximum number of exceptions of a stretch. Each is tested in turn, so many would make the search
/// linear; with three the program is nearly as short as possible.
const MAX_EXCEPTIONS: usize = 3;

/// Values from `first` up to the next range's `first` go to `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u32,
    pub(super) target: Label,
}

/// Consecutive ranges with the target `common`, except for single values with other targets.
struct Stretch {
    first: u32,
    common: Label,
    exceptions: Vec<(u32, Label)>,
}

/// Emits code that jumps to the target of the accumulator's range.
///
/// The ranges must be ascending and start at 0. If all have the same target, no code is needed and
/// that target is returned.
pub(super) fn switch(assembler: &mut Assembler, ranges: &[Range]) -> Label {
    let mut merged = ranges.to_vec();
    merged.dedup_by_key(|range| range.target);
    let stretches = group(&merged);
    search(assembler, &stretches)
}

fn search(assembler: &mut Assembler, stretches: &[Stretch]) -> Label {
    if let [stretch] = stretches {
        let exceptions = stretch.exceptions.iter().rev();
        return exceptions.fold(stretch.common, |otherwise, &(value, target)| {
            assembler.branch(Test::Equals(value), target, otherwise)
        });
    }
    let (lower, upper) = stretches.split_at(stretches.len() / 2);
    let at_least = search(assembler, upper);
    let below = search(assembler, lower);
    assembler.branch(Test::AtLeast(upper[0].first), at_least, below)
}

/// Divides the ranges into the stretches that need the fewest instructions: one for each border and
/// one for each exception. `cheapest[n]` holds the cost of the first `n` ranges and the start of
/// their last stretch.
fn group(ranges: &[Range]) -> Vec<Stretch> {
    let mut cheapest = vec![(0, 0)];
    for end in 1..=ranges.len() {
        let candidates = (0..end).rev().map_while(|start| {
            let stretch = stretch(ranges, start, end)?;
            Some((cheapest[start].0 + 1 + stretch.exceptions.len(), start))
        });
        cheapest.push(candidates.min().expect("one range alone is always a stretch"));
    }

    let mut stretches = Vec::new();
    let mut end = ranges.len();
    while end > 0 {
        let start = cheapest[end].1;
        stretches.extend(stretch(ranges, start, end));
        end = start;
    }
    stretches.reverse();
    stretches
}

/// The ranges from `start` to before `end` as one stretch, if they can be one.
fn stretch(ranges: &[Range], start: usize, end: usize) -> Option<Stretch> {
    let is_single = |index: usize| {
        ranges.get(index + 1).is_some_and(|next| next.first == ranges[index].first + 1)
    };
    // A range of several values cannot be an exception, so it determines the common target.
    let common_index = (start..end).find(|&index| !is_single(index)).unwrap_or(start);
    let common = ranges[common_index].target;
    let mut exceptions = Vec::new();
    for index in (start..end).filter(|&index| ranges[index].target != common) {
        if !is_single(index) || exceptions.len() == MAX_EXCEPTIONS {
            return None;
        }
        exceptions.push((ranges[index].first, ranges[index].target));
    }
    Some(Stretch { first: ranges[start].first, common, exceptions })
}

#[cfg(test)]
mod tests {
    use super::super::tests::interpreter;
    use super::*;

    /// Compiles ranges of (first value, action); returns the length of the program and the action
    /// for each value.
    fn compiled(ranges: &[(u32, u32)]) -> (usize, impl Fn(u32) -> u32) {
        let mut assembler = Assembler::default();
        let ranges: Vec<Range> = ranges
            .iter()
            .map(|&(first, action)| Range { first, target: assembler.return_action(action) })
            .collect();
        let start = switch(&mut assembler, &ranges);
        assembler.load(0, start);
        let program = assembler.finish();
        (program.len(), move |value| interpreter::run(&program, value, 0, [0; 6]))
    }

    #[test]
    fn every_value_finds_its_range() {
        let ranges = [(0, 1), (3, 2), (4, 1), (9, 3), (10, 2), (11, 3), (40, 1), (41, 4), (900, 2)];
        let (_, find) = compiled(&ranges);
        for value in (0..1000).chain([u32::MAX - 1, u32::MAX]) {
            let expected =
                ranges.iter().rfind(|(first, _)| *first <= value).expect("starts at 0").1;
            assert_eq!(find(value), expected, "{value}");
        }
    }

    #[test]
    fn a_single_exception_costs_one_instruction() {
        let (length, find) = compiled(&[(0, 1), (16, 2), (17, 1)]);
        // One load, one comparison, two returns.
        assert_eq!(length, 4);
        assert_eq!((find(15), find(16), find(17)), (1, 2, 1));
    }

    #[test]
    fn ranges_with_one_target_need_no_comparison() {
        let (length, _) = compiled(&[(0, 1), (5, 1), (9, 1)]);
        assert_eq!(length, 2);
    }

    #[test]
    fn the_search_is_short_even_for_many_ranges() {
        let ranges: Vec<_> = (0..200).map(|index| (index * 10, 1 + index % 2)).collect();
        let (length, find) = compiled(&ranges);
        assert!(length <= 203, "{length}");
        assert_eq!((find(9), find(10), find(1995)), (1, 2, 2));
    }
}
