//! `sandboxd`: the sandbox library behind HTTP.

use std::process::ExitCode;

fn main() -> ExitCode {
    sandbox_server::run()
}
