//! An interpreter of classic BPF that behaves like the kernel's.

use libc::sock_filter;

/// Runs `program` for one call and returns the action it ends with.
pub(in super::super) fn run(
    program: &[sock_filter],
    number: u32,
    arch: u32,
    arguments: [u64; 6],
) -> u32 {
    let mut data = [0_u8; 64];
    data[0..4].copy_from_slice(&number.to_le_bytes());
    data[4..8].copy_from_slice(&arch.to_le_bytes());
    for (argument, place) in arguments.iter().zip(data[16..].chunks_mut(8)) {
        place.copy_from_slice(&argument.to_le_bytes());
    }
    let mut accumulator = 0_u32;
    let mut position = 0;
    loop {
        let sock_filter { code, jt, jf, k } = program[position];
        position += 1;
        let holds = match code {
            0x20 => {
                let offset = usize::try_from(k).expect("offsets are small");
                assert!(offset.is_multiple_of(4), "the kernel refuses unaligned loads");
                let word = data[offset..offset + 4].try_into().expect("four bytes");
                accumulator = u32::from_le_bytes(word);
                continue;
            }
            0x54 => {
                accumulator &= k;
                continue;
            }
            0x05 => {
                position += usize::try_from(k).expect("jumps are short");
                continue;
            }
            0x06 => return k,
            0x15 => accumulator == k,
            0x25 => accumulator > k,
            0x35 => accumulator >= k,
            0x45 => accumulator & k != 0,
            other => panic!("instruction {other:#x} is not used by filters"),
        };
        position += usize::from(if holds { jt } else { jf });
    }
}
