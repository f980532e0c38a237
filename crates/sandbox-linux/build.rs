//! Compiles what is embedded here: the library that is loaded into runtimes which are copied (`preload/fork.rs`), and
//! the agent that runs in containers (`agent/main.rs`).
//!
//! They have no dependencies, so the compiler that builds this crate is all it takes; a crate of its own would need
//! its result embedded in another crate, for which Cargo has no stable way.

use std::path::{Path, PathBuf};
use std::process::Command;

#[allow(clippy::disallowed_methods, reason = "a build script is told everything that way")]
fn main() {
    println!("cargo::rerun-if-changed=preload");
    println!("cargo::rerun-if-changed=agent");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let output = PathBuf::from(variable("OUT_DIR"));
    let is_native = variable("TARGET") == variable("HOST");
    if !is_native || variable("CARGO_CFG_TARGET_ENV") != "gnu" {
        // There may be no linker for the target, or no shared libraries in programs for it. Runtimes are then started
        // one by one, and there are no containers.
        for name in ["fork.so", "agent"] {
            std::fs::write(output.join(name), b"").expect("the output directory can be written");
        }
        return;
    }
    let fork = ["--crate-type=cdylib", "--crate-name=sandbox_fork", "-Copt-level=2"];
    let fork = compile(&variable("RUSTC"), &fork, "preload/fork.rs", &output.join("fork.so"));
    assert!(fork, "preload/fork.rs could not be compiled");
    // A container may have other libraries than this machine, or none.
    let agent = [
        "--crate-type=bin",
        "--crate-name=sandbox_agent",
        "-Copt-level=s",
        "-Clto=fat",
        "-Ctarget-feature=+crt-static",
    ];
    if !compile(&variable("RUSTC"), &agent, "agent/main.rs", &output.join("agent")) {
        // Some distributions have the static C library in a package of its own. Everything else works without.
        println!("cargo::warning=no agent for containers: it needs a static C library (libc.a)");
        std::fs::write(output.join("agent"), b"").expect("the output directory can be written");
    }
}

fn compile(compiler: &str, kind: &[&str], source: &str, output: &Path) -> bool {
    let status = Command::new(compiler)
        .arg("--edition=2024")
        .args(kind)
        .args(["-Cpanic=abort", "-Cstrip=symbols", "-Dwarnings"])
        .args([source.as_ref(), "-o".as_ref(), output.as_os_str()])
        .status();
    status.is_ok_and(|status| status.success())
}
