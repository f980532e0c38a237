//! `sandbox-run runtimes --install LANG…`: install toolchains with the host's package managers.
//!
//! Packages of Debian are installed with apt-get. What Debian lacks, or has only in an old version, is installed with
//! pip or npm into a directory of the user. It is assembled in a temporary directory and then renamed, so that an
//! interrupted installation is never mistaken for a complete one.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use sandbox::{Installer, Runtimes, toolchains_directory};

use crate::errors::{Failure, printable};

/// Installs the toolchains of these languages that are missing.
pub(super) fn install(runtimes: &Runtimes, languages: &[String]) -> Result<(), Failure> {
    let mut missing = Vec::new();
    for language in languages {
        match find_missing(runtimes, language)? {
            Some(toolchain) => missing.push(toolchain),
            None => log(&format!("{language} is already installed"))?,
        }
    }
    let packages: Vec<&str> =
        missing.iter().flat_map(|toolchain| &toolchain.installer.apt).map(String::as_str).collect();
    if !packages.is_empty() {
        install_with_apt(&packages)?;
    }
    for toolchain in &missing {
        install_from_registries(toolchain)?;
    }
    Ok(())
}

/// A language whose toolchain is missing, and what installs it.
struct Missing<'a> {
    language: String,
    installer: &'a Installer,
}

fn find_missing<'a>(
    runtimes: &'a Runtimes,
    language: &str,
) -> Result<Option<Missing<'a>>, Failure> {
    let choice = language.parse().map_err(|error| Failure::usage(&error))?;
    let how = match runtimes.resolve(&choice) {
        Ok(_) => return Ok(None),
        Err(sandbox::ResolveError::ToolchainMissing { language, install, .. }) => {
            (language, install)
        }
        Err(error) => return Err(Failure::usage(&error)),
    };
    let (language, install) = how;
    let installer = runtimes.installer(&language);
    let installer = installer.filter(|installer| **installer != Installer::default());
    match (installer, install) {
        (Some(installer), _) => Ok(Some(Missing { language, installer })),
        (None, Some(install)) => Err(Failure::Usage(format!(
            "cannot install {language} automatically; install it with: {install}"
        ))),
        (None, None) => Err(Failure::Usage(format!(
            "cannot install {language}: its recipe names no packages ([toolchain.installer])"
        ))),
    }
}

fn install_with_apt(packages: &[&str]) -> Result<(), Failure> {
    if !is_program("apt-get") {
        return Err(Failure::Usage(format!(
            "apt-get not found: install these packages with the package manager of this host: {}",
            packages.join(" ")
        )));
    }
    let is_root = rustix::process::geteuid().is_root();
    let mut line: Vec<&str> = if is_root { Vec::new() } else { vec!["sudo"] };
    line.extend(["apt-get", "install", "--yes", "--no-install-recommends"]);
    line.extend(packages);
    if run(&line).is_ok() {
        return Ok(());
    }
    // A fresh machine has no package lists, and an old one has outdated ones.
    let mut update: Vec<&str> = if is_root { Vec::new() } else { vec!["sudo"] };
    update.extend(["apt-get", "update"]);
    run(&update)?;
    run(&line)
}

/// Installs packages of pip and npm into a directory of this user.
fn install_from_registries(toolchain: &Missing<'_>) -> Result<(), Failure> {
    let Installer { pip, npm, .. } = toolchain.installer;
    if pip.is_empty() && npm.is_empty() {
        return Ok(());
    }
    let toolchains = toolchains_directory().ok_or_else(|| {
        Failure::Usage("cannot find the home directory to install into: set HOME".to_owned())
    })?;
    let staging = StagingDirectory::create(&toolchains, &toolchain.language)?;
    for line in registry_commands(toolchain.installer, &staging.temporary) {
        run(&line.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    staging.commit()
}

/// The pip and npm commands that install into a directory.
pub(crate) fn registry_commands(installer: &Installer, target: &Path) -> Vec<Vec<String>> {
    let Installer { pip, npm, .. } = installer;
    let target = target.display().to_string();
    // Nothing imports these packages as modules, so bytecode is not needed.
    let pip_install = ["python3", "-m", "pip", "install", "--quiet", "--no-compile", "--target"];
    let npm_install = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix"];
    let all: [(&[&str], _); 2] = [(&pip_install, pip), (&npm_install, npm)];
    let toolchain = all.into_iter().filter(|(_, packages)| !packages.is_empty());
    let line = |(begin, packages): (&[&str], &Vec<String>)| {
        let begin = begin.iter().copied().chain([target.as_str()]).map(str::to_owned);
        begin.chain(packages.iter().cloned()).collect()
    };
    toolchain.map(line).collect()
}

/// A directory in which a toolchain is assembled before it is renamed to its final path.
struct StagingDirectory {
    temporary: PathBuf,
    target: PathBuf,
}

impl StagingDirectory {
    fn create(toolchains: &Path, language: &str) -> Result<Self, Failure> {
        let temporary = toolchains.join(format!(".{language}.{}", std::process::id()));
        std::fs::create_dir_all(&temporary)
            .map_err(|error| cannot("create", &temporary, &error))?;
        Ok(Self { temporary, target: toolchains.join(language) })
    }

    fn commit(self) -> Result<(), Failure> {
        if self.target.exists() {
            // Its toolchain was found to be unusable.
            std::fs::remove_dir_all(&self.target)
                .map_err(|error| cannot("replace", &self.target, &error))?;
        }
        std::fs::rename(&self.temporary, &self.target)
            .map_err(|error| cannot("create", &self.target, &error))
    }
}

impl Drop for StagingDirectory {
    fn drop(&mut self) {
        // After a commit it no longer exists.
        let _ = std::fs::remove_dir_all(&self.temporary);
    }
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::Internal(format!("cannot {what} {}: {error}", path.display()))
}

/// Logs a command and runs it with its output on standard error.
fn run(line: &[&str]) -> Result<(), Failure> {
    let shown = line.join(" ");
    log(&shown)?;
    let mut command = Command::new(line[0]);
    command.args(&line[1..]).env("DEBIAN_FRONTEND", "noninteractive");
    // Standard output is for the list of languages.
    command.stdin(std::process::Stdio::null()).stdout(io::stderr());
    let status = command.status();
    let status =
        status.map_err(|error| Failure::Internal(format!("cannot run '{shown}': {error}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::Internal(format!("'{shown}' failed: {status}")))
    }
}

fn is_program(name: &str) -> bool {
    let known = ["/usr/bin", "/usr/local/bin", "/bin"];
    known.iter().any(|directory| Path::new(directory).join(name).exists())
}

fn log(line: &str) -> Result<(), Failure> {
    let printed = writeln!(io::stderr().lock(), "sandbox-run: {}", printable(line));
    printed.map_err(|error| Failure::printing(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_appears_only_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let staging = StagingDirectory::create(folder.path(), "toy").unwrap();
        std::fs::write(staging.temporary.join("file"), "").unwrap();
        drop(staging);
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            0,
            "the temporary directory was left"
        );
        for contents in ["one", "two"] {
            let staging = StagingDirectory::create(folder.path(), "toy").unwrap();
            std::fs::write(staging.temporary.join("file"), contents).unwrap();
            staging.commit().unwrap();
            assert_eq!(std::fs::read_to_string(folder.path().join("toy/file")).unwrap(), contents);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn each_registry_has_its_own_command() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let none = Installer { apt: names(&["x"]), ..Installer::default() };
        assert!(registry_commands(&none, Path::new("/t")).is_empty());
        let both = Installer { pip: names(&["a>=1"]), npm: names(&["b@2", "c"]), apt: Vec::new() };
        let lines = registry_commands(&both, Path::new("/t"));
        let lines: Vec<String> = lines.iter().map(|line| line.join(" ")).collect();
        assert!(lines[0].starts_with("python3 -m pip install"), "{lines:?}");
        assert!(lines[0].ends_with("--target /t a>=1"), "{lines:?}");
        assert!(lines[1].starts_with("npm install"), "{lines:?}");
        assert!(lines[1].ends_with("--prefix /t b@2 c"), "{lines:?}");
    }

    #[test]
    fn a_failed_command_is_reported_with_its_status() {
        let failure = run(&["/bin/sh", "-c", "exit 3"]).unwrap_err();
        assert!(failure.message().unwrap().contains("exit status: 3"));
        assert!(run(&["/nonexistent/program"]).is_err());
    }
}
