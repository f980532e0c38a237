//! The program of an OCI runtime.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sandbox_core::{BackendError, Isolation};
use sandbox_linux::private_mounts;

use super::choice::OciRuntime;
use super::kind::Kind;
use crate::error::failed;

/// Directories with such programs, for users whose search path lacks those for administrators.
const PLACES: &[&str] =
    &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// A container runtime on this host.
#[derive(Clone, Debug)]
pub(super) struct Runtime {
    pub(super) kind: Kind,
    program: PathBuf,
}

impl Runtime {
    /// Finds the requested runtime, or the first of its kind, and checks that it supports the
    /// options that will be used.
    pub(super) fn choose(
        isolation: Isolation,
        wanted: Option<&OciRuntime>,
    ) -> Result<Self, BackendError> {
        let kinds = Kind::of(isolation);
        if let Some(OciRuntime::At(program)) = wanted {
            return Self::at(program, kinds);
        }
        if let Some(kind) = wanted.and_then(OciRuntime::kind) {
            return Self::find(kind);
        }
        let mut first_error = None;
        for kind in kinds {
            match Self::find(*kind) {
                Ok(runtime) => return Ok(runtime),
                // Explain how to install the preferred one.
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or_else(|| failed("query the runtimes", "none is known")))
    }

    /// The runtime of this kind at this path.
    fn at(program: &Path, kinds: &[Kind]) -> Result<Self, BackendError> {
        let mut found = kinds.iter().map(|kind| Self { kind: *kind, program: program.to_owned() });
        let names: Vec<&str> = kinds.iter().map(|kind| kind.program()).collect();
        let names = names.join(" or ");
        let program = program.display();
        found.find(Self::is_as_expected).ok_or_else(|| {
            let reason = format!(
                "{program} does not work, is not {names}, or is too old: name another with \
                 --oci-runtime, or use --isolation native"
            );
            BackendError::Refused(reason)
        })
    }

    fn find(kind: Kind) -> Result<Self, BackendError> {
        let name = kind.program();
        let found =
            PLACES.iter().map(|place| Path::new(place).join(name)).find(|path| path.is_file());
        let missing = || refused(&format!("{name} is not installed"), kind.how_to_install());
        let runtime = Self { kind, program: found.ok_or_else(missing)? };
        if runtime.is_as_expected() {
            return Ok(runtime);
        }
        let program = runtime.program.display();
        let what = format!("{program} does not work, is another program, or is too old");
        Err(refused(&what, kind.how_to_install()))
    }

    /// The runtime that an ended process used: at the recorded path, or else in the usual
    /// directories.
    pub(super) fn noted(kind: Kind, note: &Path) -> Option<Self> {
        match fs::read_link(note) {
            Ok(program) => Self::at(&program, &[kind]).ok(),
            Err(_) => Self::find(kind).ok(),
        }
    }

    /// Records the runtime's path for a later start.
    pub(super) fn note(&self, note: &Path) -> io::Result<()> {
        symlink(&self.program, note)
    }

    /// Options are parsed before the version is printed, so unknown options are noticed.
    fn is_as_expected(&self) -> bool {
        let output = self.bare_call().arg("--version").stdin(Stdio::null()).output();
        output.is_ok_and(|output| {
            let text = String::from_utf8_lossy(&output.stdout);
            output.status.success() && text.starts_with(self.kind.program())
        })
    }

    fn bare_call(&self) -> Command {
        let mut command = Command::new(&self.program);
        // The runtime gets nothing of this process's environment.
        command.env_clear().env("PATH", PLACES.join(":")).current_dir("/");
        command.args(self.kind.options());
        command
    }

    /// A call with the runtime's state in this directory.
    pub(super) fn call(&self, root: &Path) -> Command {
        let mut command = self.bare_call();
        command.arg("--root").arg(root);
        private_mounts::hide(&mut command, self.kind.hidden());
        command
    }

    /// A call that runs a container on one of the runtime's platforms.
    pub(super) fn call_in_a_way(&self, root: &Path, way: &str) -> Command {
        let mut command = self.call(root);
        if !way.is_empty() {
            command.arg(format!("--platform={way}"));
        }
        command
    }

    /// Names of the containers that it knows.
    pub(super) fn containers(&self, root: &Path) -> Result<Vec<String>, BackendError> {
        let listed = self.call(root).args(["list", "--quiet"]).stdin(Stdio::null()).output();
        let Output { stdout, .. } = listed.map_err(|error| failed("list containers", error))?;
        Ok(String::from_utf8_lossy(&stdout).lines().map(str::to_owned).collect())
    }

    /// Kills and deletes a container, if it exists.
    pub(super) fn delete(&self, root: &Path, name: &str) {
        let mut call = self.call(root);
        call.args(["delete", "--force", name]).stdin(Stdio::null());
        // It may never have been created, or be gone.
        let _ = call.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

fn refused(what: &str, how: &str) -> BackendError {
    let reason = format!("{what}: install it ({how}), or use --isolation native");
    BackendError::Refused(reason)
}
