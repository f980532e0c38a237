#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_protocol::Message as _;
use sandbox_protocol::exec::{ExecRequest, InitMessage};

fuzz_target!(|bytes: &[u8]| {
    sandbox_fuzz::check::<InitMessage>(bytes);
    // As init does: the request is decoded where the message was.
    if let Ok(InitMessage::Exec(request)) = InitMessage::decode(bytes) {
        sandbox_fuzz::check::<ExecRequest>(request);
    }
});
