#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_protocol::agent::{AgentEvent, AgentRequest};
use sandbox_protocol::frame;

/// What the supervisor accepts before it asks for files.
const MAX_BYTES: usize = 128 * 1024;

/// Reads a stream as the supervisor and the agent do.
fuzz_target!(|stream: &[u8]| {
    let mut rest = stream;
    while let Ok(Some((message, length))) = frame::split(rest, MAX_BYTES) {
        assert_eq!(message, &rest[frame::HEADER_BYTES..length]);
        sandbox_fuzz::check::<AgentEvent>(message);
        sandbox_fuzz::check::<AgentRequest>(message);
        rest = &rest[length..];
    }
});
