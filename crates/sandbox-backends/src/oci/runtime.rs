//! The program that builds containers.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sandbox_core::BackendError;

use super::kind::Kind;
use crate::failed;

/// Where such programs are, also for users whose search path leaves out the directories for administrators.
const PLACES: &[&str] =
    &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// A container runtime on this host.
#[derive(Clone, Debug)]
pub(super) struct Runtime {
    pub(super) kind: Kind,
    program: PathBuf,
}

impl Runtime {
    /// Looks for it, and asks it whether it takes what we will ask of it.
    pub(super) fn find(kind: Kind) -> Result<Self, BackendError> {
        let name = kind.program();
        let refused = |what: String| {
            let how = kind.how_to_install();
            let reason = format!("{what}: install it ({how}), or use --isolation native");
            BackendError::Refused(reason)
        };
        let found =
            PLACES.iter().map(|place| Path::new(place).join(name)).find(|path| path.is_file());
        let program = found.ok_or_else(|| refused(format!("{name} is not installed")))?;
        let runtime = Self { kind, program };
        if runtime.is_as_expected() {
            return Ok(runtime);
        }
        let program = runtime.program.display();
        Err(refused(format!("{program} does not work, is another program, or is too old")))
    }

    /// Options are read before the version is told, so that one that is not known shows.
    fn is_as_expected(&self) -> bool {
        let told = self.bare_call().arg("--version").stdin(Stdio::null()).output();
        told.is_ok_and(|told| {
            let text = String::from_utf8_lossy(&told.stdout);
            told.status.success() && text.starts_with(self.kind.program())
        })
    }

    fn bare_call(&self) -> Command {
        let mut command = Command::new(&self.program);
        // Nothing of our own environment is the runtime's business.
        command.env_clear().env("PATH", PLACES.join(":")).current_dir("/");
        command.args(self.kind.options());
        command
    }

    /// A call of it, with its state in this directory.
    pub(super) fn call(&self, root: &Path) -> Command {
        let mut command = self.bare_call();
        command.arg("--root").arg(root);
        command
    }

    /// The same for a container that is to run in one of the runtime's ways.
    pub(super) fn call_in_a_way(&self, root: &Path, way: &str) -> Command {
        let mut command = self.call(root);
        if !way.is_empty() {
            command.arg(format!("--platform={way}"));
        }
        command
    }

    /// Names of the containers that it knows of.
    pub(super) fn containers(&self, root: &Path) -> Result<Vec<String>, BackendError> {
        let listed = self.call(root).args(["list", "--quiet"]).stdin(Stdio::null()).output();
        let Output { stdout, .. } = listed.map_err(|error| failed("list containers", error))?;
        Ok(String::from_utf8_lossy(&stdout).lines().map(str::to_owned).collect())
    }

    /// Ends and forgets a container, if there is one of this name.
    pub(super) fn delete(&self, root: &Path, name: &str) {
        let mut call = self.call(root);
        call.args(["delete", "--force", name]).stdin(Stdio::null());
        // One that was never made, or is gone, is what was wanted.
        let _ = call.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}
