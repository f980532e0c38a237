//! What every target checks, beside the absence of panics.

use sandbox_protocol::Message;

/// Decodes one kind of message. What is accepted must encode to the same bytes again.
pub fn check<'a, M: Message<'a>>(bytes: &'a [u8]) {
    if let Ok(message) = M::decode(bytes) {
        assert_eq!(message.encode(), bytes, "the encoding is not canonical");
    }
}
