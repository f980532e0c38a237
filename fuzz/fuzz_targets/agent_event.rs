#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_protocol::agent::AgentEvent;

fuzz_target!(|bytes: &[u8]| sandbox_fuzz::check::<AgentEvent>(bytes));
