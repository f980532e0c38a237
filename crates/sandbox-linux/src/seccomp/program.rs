//! A compiled filter, and its encoding.

use libc::sock_filter;

/// The maximum length of a classic BPF program (`BPF_MAXINSNS`).
pub(super) const MAX_INSTRUCTIONS: usize = 4096;

/// The size of one instruction: 16 bits of code, two jump offsets of 8 bits, 32 bits of operand.
const INSTRUCTION_SIZE: usize = 8;

/// A filter in the kernel's format.
#[derive(Clone, Debug)]
pub struct Program {
    /// Classic BPF instructions, in order.
    pub instructions: Vec<sock_filter>,
}

/// Why bytes are not a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// The bytes do not divide into instructions.
    #[error("a filter of {0} bytes does not divide into instructions of 8 bytes")]
    Ragged(usize),
    /// The kernel allows between 1 and 4096 instructions.
    #[error("a filter must have 1 to 4096 instructions and has {0}")]
    Length(usize),
}

impl Program {
    /// Number of instructions.
    #[expect(clippy::len_without_is_empty, reason = "a program is never empty")]
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    /// The program as bytes, 8 for each instruction, for another process on the same machine.
    pub fn as_bytes(&self) -> &[u8] {
        const { assert!(size_of::<sock_filter>() == INSTRUCTION_SIZE) };
        // SAFETY: the pointer and the length describe the vector's own initialized elements, which
        // live as long as the borrow. `sock_filter` is repr(C) with fields of 2, 1, 1 and 4 bytes,
        // which fill its 8 bytes, so that no byte is padding; and any address is aligned for u8.
        unsafe {
            std::slice::from_raw_parts(
                self.instructions.as_ptr().cast::<u8>(),
                self.instructions.len() * INSTRUCTION_SIZE,
            )
        }
    }

    /// Decodes the output of [`Program::as_bytes`]. The kernel validates the instructions when the
    /// program is installed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProgramError> {
        let (chunks, rest) = bytes.as_chunks::<INSTRUCTION_SIZE>();
        if !rest.is_empty() {
            return Err(ProgramError::Ragged(bytes.len()));
        }
        if chunks.is_empty() || chunks.len() > MAX_INSTRUCTIONS {
            return Err(ProgramError::Length(chunks.len()));
        }
        let instructions = chunks.iter().copied().map(instruction_from_bytes).collect();
        Ok(Self { instructions })
    }
}

fn instruction_from_bytes([code0, code1, jt, jf, k0, k1, k2, k3]: [u8; 8]) -> sock_filter {
    sock_filter {
        code: u16::from_ne_bytes([code0, code1]),
        jt,
        jf,
        k: u32::from_ne_bytes([k0, k1, k2, k3]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_survives_the_journey_as_bytes() {
        let program = Program {
            instructions: vec![
                sock_filter { code: 0x15, jt: 1, jf: 2, k: 0xdead_beef },
                sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x7fff_0000 },
            ],
        };
        assert_eq!(program.as_bytes().len(), 16);
        let back = Program::from_bytes(program.as_bytes()).expect("two whole instructions");
        let fields = |program: &Program| -> Vec<_> {
            program.instructions.iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect()
        };
        assert_eq!(fields(&back), fields(&program));
    }

    #[test]
    fn bytes_that_are_no_program_are_refused() {
        assert_eq!(Program::from_bytes(&[0; 9]).unwrap_err(), ProgramError::Ragged(9));
        assert_eq!(Program::from_bytes(&[]).unwrap_err(), ProgramError::Length(0));
        let long = vec![0; 8 * 4097];
        assert_eq!(Program::from_bytes(&long).unwrap_err(), ProgramError::Length(4097));
    }
}
