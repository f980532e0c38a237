//! A supervisor that the clean-up tests kill: prints `ready` when it has a sandbox, then executes programs of one
//! kind until it is killed.
//!
//! `doomed-supervisor KIND [PARALLEL] [ISOLATION]`

use std::process::ExitCode;

use sandbox::{Request, Sandbox};
use sandbox_tests::backend::named;

/// What its programs do, by the name of the kind.
const KINDS: &[(&str, &str)] = &[
    ("busy", "while :; do :; done"),
    ("sleeping", "sleep 60"),
    ("stopped", "kill -STOP $$"),
    ("forking", "while :; do (setsid sleep 60 &); (setsid sleep 0.01 &); done 2>&-"),
    ("deaf", "trap '' TERM INT HUP; sleep 60 & while :; do :; done"),
    ("writing", "while :; do head -c 1M /dev/zero > /tmp/x; echo x; done"),
    ("brief", "true"),
];

#[expect(clippy::print_stdout, reason = "the test waits for this line")]
fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    let parallel = arguments.next().and_then(|text| text.parse().ok());
    let Some((_, script)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        return ExitCode::from(2);
    };
    let backend = named(&arguments.next().unwrap_or_else(|| "native".to_owned()));
    let sandbox = (backend.choose)(Sandbox::builder()).build().expect("a sandbox can be started");
    println!("ready");
    std::thread::scope(|scope| {
        for _ in 0..parallel.unwrap_or(1) {
            scope.spawn(|| {
                loop {
                    let request = Request::builder("bash").code(*script).build();
                    let request = request.expect("the request is a valid one");
                    // The result does not matter: this process is about to be killed.
                    let _ = sandbox.execute(request);
                }
            });
        }
    });
    ExitCode::FAILURE
}
