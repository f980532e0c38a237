//! Compiles what is embedded here: the agent (`sandbox-agent`), which runs in containers, and the zygote library
//! (`sandbox-zygote`), which runtimes load.
//!
//! Both are packages of the workspace, which Cargo checks and tests. It cannot build them for this purpose: depending on
//! the program or shared library of another package (artifact dependencies, RFC 3028) is not stable, and neither is a
//! profile or target feature for one package (the agent is static and optimized for size; both abort on panic). So this
//! script runs the compiler that builds this crate on the same sources. sandbox-protocol, their only dependency, is
//! compiled along with them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program or library to embed.
struct Artifact {
    /// Name of the file in the output directory.
    file: &'static str,
    /// Its package, and the root of its sources.
    package: &'static str,
    root: &'static str,
    crate_name: &'static str,
    flags: &'static [&'static str],
    /// Flags for it and for sandbox-protocol, which have to agree.
    common_flags: &'static [&'static str],
    protocol_features: &'static [&'static str],
}

const ZYGOTE: Artifact = Artifact {
    file: "zygote.so",
    package: "sandbox-zygote",
    root: "src/lib.rs",
    crate_name: "sandbox_zygote",
    flags: &["--crate-type=cdylib"],
    common_flags: &["-Copt-level=2"],
    protocol_features: &[],
};
const AGENT: Artifact = Artifact {
    file: "agent",
    package: "sandbox-agent",
    root: "src/main.rs",
    crate_name: "sandbox_agent",
    flags: &["--crate-type=bin", "-Clto=fat"],
    // A container may have other libraries than this machine, or none.
    common_flags: &["-Copt-level=s", "-Ctarget-feature=+crt-static"],
    protocol_features: &["alloc"],
};
const PROTOCOL: &str = "../sandbox-protocol/src";

#[allow(clippy::disallowed_methods, reason = "Cargo passes everything to a build script that way")]
fn main() {
    println!("cargo::rerun-if-changed={PROTOCOL}");
    for artifact in [&ZYGOTE, &AGENT] {
        println!("cargo::rerun-if-changed={}", artifact.sources().display());
    }
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let output = PathBuf::from(variable("OUT_DIR"));
    let is_native = variable("TARGET") == variable("HOST");
    if !is_native || variable("CARGO_CFG_TARGET_ENV") != "gnu" {
        // There may be no linker for the target, or no shared libraries in programs for it. Without the library runtimes
        // are started one by one; without the agent there are no containers.
        for artifact in [&ZYGOTE, &AGENT] {
            artifact.leave_out(&output);
        }
        return;
    }
    let compiler = variable("RUSTC");
    // Side by side: each is mostly one compiler waiting for itself.
    let (zygote, agent) = std::thread::scope(|scope| {
        let zygote = scope.spawn(|| ZYGOTE.compile(&compiler, &output));
        (AGENT.compile(&compiler, &output), zygote.join().unwrap_or(false))
    });
    assert!(zygote, "{} could not be compiled", ZYGOTE.package);
    if !agent {
        // Some distributions have the static C library in a package of its own. Everything else works without.
        println!("cargo::warning=no agent for containers: it needs a static C library (libc.a)");
        AGENT.leave_out(&output);
    }
}

impl Artifact {
    fn sources(&self) -> PathBuf {
        Path::new("..").join(self.package).join("src")
    }

    fn leave_out(&self, output: &Path) {
        std::fs::write(output.join(self.file), b"").expect("the output directory can be written");
    }

    fn compile(&self, compiler: &str, output: &Path) -> bool {
        let libraries = output.join(self.crate_name);
        std::fs::create_dir_all(&libraries).expect("the output directory can be written");
        let library = libraries.join("libsandbox_protocol.rlib");
        let protocol = self.run(compiler, |command| {
            command.args(["--crate-type=rlib", "--crate-name=sandbox_protocol"]);
            command.arg("--check-cfg=cfg(feature, values(\"alloc\"))");
            for feature in self.protocol_features {
                command.args(["--cfg", &format!("feature=\"{feature}\"")]);
            }
            command.arg(Path::new(PROTOCOL).join("lib.rs")).arg("-o").arg(&library);
        });
        protocol
            && self.run(compiler, |command| {
                let mut external = std::ffi::OsString::from("sandbox_protocol=");
                external.push(&library);
                command.args(self.flags).args(["--crate-name", self.crate_name]).arg("--extern");
                command.arg(external).arg(Path::new("..").join(self.package).join(self.root));
                command.arg("-Cstrip=symbols").arg("-o").arg(output.join(self.file));
            })
    }

    fn run(&self, compiler: &str, arguments: impl FnOnce(&mut Command)) -> bool {
        let mut command = Command::new(compiler);
        // Warnings are for `cargo clippy`; a newer compiler must not break an installation.
        command.args(["--edition=2024", "-Cpanic=abort", "--cap-lints=allow"]);
        command.args(self.common_flags);
        arguments(&mut command);
        command.status().is_ok_and(|status| status.success())
    }
}
