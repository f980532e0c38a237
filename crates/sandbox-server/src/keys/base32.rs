//! Base32 in lower case. It is safe in headers, shells and file names, and a double click selects all of it.

/// Crockford's alphabet: without the letters that look like digits.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Encodes bytes, most significant bit first.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(length(bytes.len()));
    let mut pending: u32 = 0;
    let mut bits = 0;
    for byte in bytes {
        pending = (pending << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(letter(pending >> bits));
        }
    }
    if bits > 0 {
        text.push(letter(pending << (5 - bits)));
    }
    text
}

/// The length of the encoding of this many bytes.
pub(super) const fn length(bytes: usize) -> usize {
    (bytes * 8).div_ceil(5)
}

fn letter(bits: u32) -> char {
    char::from(ALPHABET[(bits & 31) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_encoded_five_bits_at_a_time() {
        assert_eq!(encode(&[]), "");
        assert_eq!(encode(&[0]), "00");
        assert_eq!(encode(&[0xff]), "zw");
        assert_eq!(encode(&[0, 0, 0, 0, 31]), "0000000z");
        assert_eq!(encode(&[0x08, 0x42, 0x10, 0x84, 0x21]), "11111111");
    }

    #[test]
    fn the_length_is_correct() {
        for count in 0..40 {
            assert_eq!(encode(&vec![0xa5; count]).len(), length(count));
        }
    }
}
