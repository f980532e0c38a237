//! The program that builds containers.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sandbox_core::BackendError;

use crate::failed;

/// Where such programs are, also for users whose search path leaves out the directories for administrators.
const PLACES: &[&str] =
    &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// A container runtime on this host.
#[derive(Clone, Debug)]
pub(super) struct Runtime {
    program: PathBuf,
}

impl Runtime {
    pub(super) fn find_runc() -> Result<Self, BackendError> {
        let found =
            PLACES.iter().map(|place| Path::new(place).join("runc")).find(|path| path.is_file());
        let program = found.ok_or_else(|| {
            let reason = "runc is not installed: install it ('apt-get install runc' on Debian), or \
                          use --isolation native";
            BackendError::Refused(reason.to_owned())
        })?;
        Ok(Self { program })
    }

    /// A call of it, with its state in this directory.
    pub(super) fn call(&self, root: &Path) -> Command {
        let mut command = Command::new(&self.program);
        // Nothing of our own environment is the runtime's business.
        command.env_clear().env("PATH", PLACES.join(":")).current_dir("/");
        command.arg("--root").arg(root);
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
