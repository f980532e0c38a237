//! Assembles classic BPF from the end to the beginning.
//!
//! Jumps in classic BPF only go forward, and a conditional jump reaches 255 instructions at most.
//! If the last instruction is written first, the target of every jump is already in place when the
//! jump is written: its distance is known, and a far target can be given a stepping stone on the
//! spot. There are no second passes and no unresolved labels.

use std::collections::BTreeMap;

use libc::sock_filter;

// The parts of an instruction code, from linux/bpf_common.h, already combined.
const LOAD_WORD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
const JUMP: u16 = 0x05; // BPF_JMP | BPF_JA
const JUMP_IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_IF_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

/// Maximum distance of a conditional jump. The jump offset has 8 bits; one instruction is reserved,
/// because a stepping stone for the other branch may come in between.
const MAX_JUMP: usize = 254;

/// A position in the program that can be jumped to: instructions counted from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Label(usize);

/// The test of a conditional jump on the accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    Equals(u32),
    AtLeast(u32),
}

#[derive(Default)]
pub(super) struct Assembler {
    reversed: Vec<sock_filter>,
    returns: BTreeMap<u32, Label>,
}

impl Assembler {
    /// The filter ends with `action`. One instruction serves all jumps to the same action.
    pub(super) fn return_action(&mut self, action: u32) -> Label {
        if let Some(&label) = self.returns.get(&action) {
            return label;
        }
        let label = self.push(RETURN, 0, 0, action);
        self.returns.insert(action, label);
        label
    }

    /// Loads the word at `offset` of `seccomp_data`, then continues at `then`.
    pub(super) fn load(&mut self, offset: u32, then: Label) -> Label {
        self.fall_through_to(then);
        self.push(LOAD_WORD, 0, 0, offset)
    }

    /// Masks the accumulator, then continues at `then`.
    pub(super) fn mask(&mut self, mask: u32, then: Label) -> Label {
        self.fall_through_to(then);
        self.push(AND, 0, 0, mask)
    }

    /// Continues at `yes` or `no`, depending on the accumulator.
    pub(super) fn branch(&mut self, test: Test, yes: Label, no: Label) -> Label {
        let yes = self.within_reach(yes);
        let no = self.within_reach(no);
        let (code, value) = match test {
            Test::Equals(value) => (JUMP_IF_EQUAL, value),
            Test::AtLeast(value) => (JUMP_IF_AT_LEAST, value),
        };
        let offset =
            |label| u8::try_from(self.distance_to(label)).expect("within_reach keeps targets near");
        self.push(code, offset(yes), offset(no), value)
    }

    /// The program, first instruction first. The entry point is the label that was created last.
    pub(super) fn finish(mut self) -> Vec<sock_filter> {
        self.reversed.reverse();
        self.reversed
    }

    fn push(&mut self, code: u16, jt: u8, jf: u8, k: u32) -> Label {
        self.reversed.push(sock_filter { code, jt, jf, k });
        Label(self.reversed.len() - 1)
    }

    /// How many instructions the next one would have to skip to reach `label`.
    fn distance_to(&self, label: Label) -> usize {
        self.reversed.len() - 1 - label.0
    }

    fn fall_through_to(&mut self, label: Label) {
        if self.distance_to(label) > 0 {
            self.stepping_stone(label);
        }
    }

    fn within_reach(&mut self, label: Label) -> Label {
        if self.distance_to(label) > MAX_JUMP { self.stepping_stone(label) } else { label }
    }

    /// An instruction, at this position, that is equivalent to `label`.
    fn stepping_stone(&mut self, label: Label) -> Label {
        let target = self.reversed[label.0];
        if target.code == RETURN {
            // A return is as short as a jump to it, and one step faster.
            return self.push(RETURN, 0, 0, target.k);
        }
        let distance = u32::try_from(self.distance_to(label)).expect("programs are short");
        self.push(JUMP, 0, 0, distance)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::interpreter;
    use super::*;

    #[test]
    fn branches_to_far_returns_and_far_code_still_arrive() {
        let mut assembler = Assembler::default();
        let far_return = assembler.return_action(1);
        let near_end = assembler.return_action(2);
        let far_code = assembler.branch(Test::Equals(7), far_return, near_end);
        let mut filler = assembler.return_action(3);
        for value in 100..800 {
            filler = assembler.branch(Test::Equals(value), far_return, filler);
        }
        let start = assembler.branch(Test::Equals(7), far_code, filler);
        let start = assembler.branch(Test::Equals(8), far_return, start);
        assembler.load(0, start);
        let program = assembler.finish();

        for (number, expected) in [(7, 1), (8, 1), (100, 1), (799, 1), (800, 3), (0, 3)] {
            assert_eq!(interpreter::run(&program, number, 0, [0; 6]), expected, "{number}");
        }
    }

    #[test]
    fn equal_returns_are_written_once() {
        let mut assembler = Assembler::default();
        assert_eq!(assembler.return_action(1), assembler.return_action(1));
        assert_eq!(assembler.finish().len(), 1);
    }
}
