//! `sandboxd` itself, under a name that the tests of this package are told by cargo.

use std::process::ExitCode;

fn main() -> ExitCode {
    sandbox_server::run()
}
