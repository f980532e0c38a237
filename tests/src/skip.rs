//! Skips are printed and counted, so that they are noticed.

use std::io::Write;

/// Prints that a test is skipped and why, and adds a line to the log of skips.
#[expect(clippy::print_stderr, reason = "a skip must be visible when a test is run by hand")]
pub fn skip(name: &str, reason: &str) {
    eprintln!("!!! SKIPPED {name}: {reason}");
    #[expect(
        clippy::disallowed_methods,
        reason = "the scripts that run all tests name the file this way"
    )]
    let Some(log) = std::env::var_os("SANDBOX_RUN_SKIP_LOG") else {
        return;
    };
    let log = std::fs::OpenOptions::new().append(true).create(true).open(log);
    let written = log.and_then(|mut log| writeln!(log, "{name}: {reason}"));
    written.expect("the file of skipped tests can be written");
}
