//! Compiles the library that is loaded into runtimes which are copied (see `preload/fork.rs`).
//!
//! It is one file without dependencies, so the compiler that builds this crate is all it takes; a crate
//! of its own would need its result embedded in another crate, for which Cargo has no stable way.

use std::path::PathBuf;
use std::process::Command;

#[allow(clippy::disallowed_methods, reason = "a build script is told everything that way")]
fn main() {
    println!("cargo::rerun-if-changed=preload/fork.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let output = PathBuf::from(variable("OUT_DIR")).join("fork.so");
    let is_native = variable("TARGET") == variable("HOST");
    if !is_native || variable("CARGO_CFG_TARGET_ENV") != "gnu" {
        // There may be no linker for the target, or no shared libraries in programs for it. Runtimes are then started one by one.
        std::fs::write(&output, b"").expect("the output directory can be written");
        return;
    }
    let status = Command::new(variable("RUSTC"))
        .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=sandbox_fork"])
        .args(["-Copt-level=2", "-Cpanic=abort", "-Cstrip=symbols", "-Dwarnings"])
        .args(["preload/fork.rs".as_ref(), "-o".as_ref(), output.as_os_str()])
        .status();
    let succeeded = status.as_ref().is_ok_and(std::process::ExitStatus::success);
    assert!(succeeded, "preload/fork.rs could not be compiled: {status:?}");
}
