//! `sandbox-run runtimes --install LANG…`: gets toolchains with the host's own package managers.
//!
//! What Debian has comes from Debian. What it has not, or only in an old version, comes from a language's
//! own registry into a directory of the user's, put together beside its place and then moved there: an
//! interrupted installation never looks like a finished one.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use sandbox::{Installer, Runtimes, toolchains_directory};

use crate::errors::{Failure, printable};

/// Installs what is missing for these languages. What is there already is left as it is.
pub(super) fn install(runtimes: &Runtimes, languages: &[String]) -> Result<(), Failure> {
    let mut missing = Vec::new();
    for language in languages {
        match still_missing(runtimes, language)? {
            Some(wanted) => missing.push(wanted),
            None => say(&format!("{language} is there already"))?,
        }
    }
    let packages: Vec<&str> =
        missing.iter().flat_map(|wanted| &wanted.installer.apt).map(String::as_str).collect();
    if !packages.is_empty() {
        install_with_apt(&packages)?;
    }
    for wanted in &missing {
        install_privately(wanted)?;
    }
    Ok(())
}

/// A language that is not there, and what brings it.
struct Wanted<'a> {
    language: String,
    installer: &'a Installer,
}

fn still_missing<'a>(
    runtimes: &'a Runtimes,
    language: &str,
) -> Result<Option<Wanted<'a>>, Failure> {
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
        (Some(installer), _) => Ok(Some(Wanted { language, installer })),
        (None, Some(install)) => Err(Failure::Usage(format!(
            "{language} cannot be installed from here: to get it, {install}"
        ))),
        (None, None) => {
            Err(Failure::Usage(format!("the recipe of {language} does not say how to get it")))
        }
    }
}

fn install_with_apt(packages: &[&str]) -> Result<(), Failure> {
    if !is_program("apt-get") {
        return Err(Failure::Usage(format!(
            "there is no apt-get here: install these with your package manager: {}",
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
    // A fresh machine has no package lists yet, and an old one outdated ones.
    let mut update: Vec<&str> = if is_root { Vec::new() } else { vec!["sudo"] };
    update.extend(["apt-get", "update"]);
    run(&update)?;
    run(&line)
}

/// What comes from a registry of a language's own goes into a directory of this user.
fn install_privately(wanted: &Wanted<'_>) -> Result<(), Failure> {
    let Installer { pip, npm, .. } = wanted.installer;
    if pip.is_empty() && npm.is_empty() {
        return Ok(());
    }
    let toolchains = toolchains_directory().ok_or_else(|| {
        Failure::Usage("there is no home directory to install into: set HOME".to_owned())
    })?;
    let site = Site::open(&toolchains, &wanted.language)?;
    for line in from_registries(wanted.installer, &site.temporary) {
        run(&line.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    site.finish()
}

/// The commands that put what comes from registries of languages into a directory.
pub(crate) fn from_registries(installer: &Installer, target: &Path) -> Vec<Vec<String>> {
    let Installer { pip, npm, .. } = installer;
    let target = target.display().to_string();
    // Nobody imports what is in there, so there is no use in compiling it.
    let pip_install = ["python3", "-m", "pip", "install", "--quiet", "--no-compile", "--target"];
    let npm_install = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix"];
    let all: [(&[&str], _); 2] = [(&pip_install, pip), (&npm_install, npm)];
    let wanted = all.into_iter().filter(|(_, packages)| !packages.is_empty());
    let line = |(begin, packages): (&[&str], &Vec<String>)| {
        let begin = begin.iter().copied().chain([target.as_str()]).map(str::to_owned);
        begin.chain(packages.iter().cloned()).collect()
    };
    wanted.map(line).collect()
}

/// Where a toolchain is put together, and where it goes.
struct Site {
    temporary: PathBuf,
    place: PathBuf,
}

impl Site {
    fn open(toolchains: &Path, language: &str) -> Result<Self, Failure> {
        let temporary = toolchains.join(format!(".{language}.{}", std::process::id()));
        std::fs::create_dir_all(&temporary).map_err(|error| cannot("make", &temporary, &error))?;
        Ok(Self { temporary, place: toolchains.join(language) })
    }

    fn finish(self) -> Result<(), Failure> {
        if self.place.exists() {
            // It was found wanting, or we would not be here.
            std::fs::remove_dir_all(&self.place)
                .map_err(|error| cannot("replace", &self.place, &error))?;
        }
        std::fs::rename(&self.temporary, &self.place)
            .map_err(|error| cannot("make", &self.place, &error))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // Moved away, or not worth keeping.
        let _ = std::fs::remove_dir_all(&self.temporary);
    }
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::Ours(format!("cannot {what} {}: {error}", path.display()))
}

/// Shows a command and carries it out, with its own words going to the person who waits.
fn run(line: &[&str]) -> Result<(), Failure> {
    let shown = line.join(" ");
    say(&shown)?;
    let mut command = Command::new(line[0]);
    command.args(&line[1..]).env("DEBIAN_FRONTEND", "noninteractive");
    // Standard output is for the list of languages.
    command.stdin(std::process::Stdio::null()).stdout(io::stderr());
    let status = command.status();
    let status = status.map_err(|error| Failure::Ours(format!("cannot start {shown}: {error}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::Ours(format!("{shown}: ended with {status}")))
    }
}

fn is_program(name: &str) -> bool {
    let known = ["/usr/bin", "/usr/local/bin", "/bin"];
    known.iter().any(|directory| Path::new(directory).join(name).exists())
}

fn say(line: &str) -> Result<(), Failure> {
    let printed = writeln!(io::stderr().lock(), "sandbox-run: {}", printable(line));
    printed.map_err(|error| Failure::printing(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_appears_when_it_is_whole_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let site = Site::open(folder.path(), "toy").unwrap();
        std::fs::write(site.temporary.join("file"), "").unwrap();
        drop(site);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it was given up");
        for contents in ["one", "two"] {
            let site = Site::open(folder.path(), "toy").unwrap();
            std::fs::write(site.temporary.join("file"), contents).unwrap();
            site.finish().unwrap();
            assert_eq!(std::fs::read_to_string(folder.path().join("toy/file")).unwrap(), contents);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn each_registry_has_its_own_command() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let none = Installer { apt: names(&["x"]), ..Installer::default() };
        assert!(from_registries(&none, Path::new("/t")).is_empty());
        let both = Installer { pip: names(&["a>=1"]), npm: names(&["b@2", "c"]), apt: Vec::new() };
        let lines = from_registries(&both, Path::new("/t"));
        let lines: Vec<String> = lines.iter().map(|line| line.join(" ")).collect();
        assert!(lines[0].starts_with("python3 -m pip install"), "{lines:?}");
        assert!(lines[0].ends_with("--target /t a>=1"), "{lines:?}");
        assert!(lines[1].starts_with("npm install"), "{lines:?}");
        assert!(lines[1].ends_with("--prefix /t b@2 c"), "{lines:?}");
    }

    #[test]
    fn a_command_that_fails_is_told_with_its_words() {
        let failure = run(&["/bin/sh", "-c", "exit 3"]).unwrap_err();
        assert!(failure.message().unwrap().contains("exit status: 3"));
        assert!(run(&["/nonexistent/program"]).is_err());
    }
}
