//! `sandboxd`: an HTTP server that runs untrusted code in sandboxes.

use std::process::ExitCode;

fn main() -> ExitCode {
    sandbox_server::run()
}
