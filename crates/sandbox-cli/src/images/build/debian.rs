//! The Debian release, mirrors and mmdebstrap command of an image.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use crate::args::Suite;

/// The release to use on a host that does not run Debian.
const DEFAULT_SUITE: &str = "bookworm";

/// The release of this host if it runs Debian, else [`DEFAULT_SUITE`], which has the packages that recipes name.
pub(super) fn suite_of_host() -> Suite {
    let os_release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    suite(&os_release)
        .or_else(|| DEFAULT_SUITE.parse().ok())
        .expect("the default suite is a valid name")
}

fn suite(os_release: &str) -> Option<Suite> {
    let value = |key: &str| {
        let mut lines = os_release.lines();
        let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(value.trim_matches(['"', '\'']))
    };
    (value("ID")? == "debian").then(|| value("VERSION_CODENAME")?.parse().ok()).flatten()
}

/// The apt sources of this host for a release. Empty if it has none; then mmdebstrap uses its default mirror.
pub(super) fn sources(suite: &Suite) -> Vec<String> {
    let mut command = Command::new("apt-get");
    command.args(["indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)"]);
    // Other vendors may have releases of the same name.
    command.args(["Created-By: Packages", "Origin: Debian"]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.map_or_else(
        |_| Vec::new(),
        |output| lines(&String::from_utf8_lossy(&output.stdout), suite.as_str()),
    )
}

fn lines(targets: &str, suite: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    let parts = ["", "-updates", "-security"].map(|part| format!("{suite}{part}"));
    let mut has_main_suite = false;
    for line in targets.lines() {
        let mut words = line.split_whitespace();
        let (Some(address), Some(release), Some("main")) =
            (words.next(), words.next(), words.next())
        else {
            continue;
        };
        // file: sources are directories of this host, which mmdebstrap cannot read.
        if address.starts_with("http") && parts.iter().any(|part| part == release) {
            has_main_suite |= release == suite;
            found.insert(format!("deb {address} {release} main"));
        }
    }
    if has_main_suite { found.into_iter().collect() } else { Vec::new() }
}

/// The mmdebstrap command without its last arguments: the release, the target and the sources.
pub(super) fn mmdebstrap(packages: &BTreeSet<String>) -> Command {
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    let mut command = if rustix::process::geteuid().is_root() {
        // mmdebstrap bind-mounts the host's devices into the root. A private mount namespace hides that from other
        // processes, and unmounts them if mmdebstrap is killed. Without root it uses a user namespace anyway.
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--", "mmdebstrap"]);
        command
    } else {
        Command::new("mmdebstrap")
    };
    command
        // Only essential packages and no package manager, because nothing is installed in an image later.
        .arg("--variant=essential")
        .arg(format!("--include={}", packages.join(",")))
        // No fsync: an image that a power failure interrupts is built again.
        .arg("--dpkgopt=force-unsafe-io")
        // The store accepts no devices, and finish.sh cleans up as the last step.
        .arg("--skip=output/dev,cleanup")
        .arg("--format=tar")
        .env("LC_ALL", "C.UTF-8");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_read_from_a_debian_host_only() {
        let debian = "PRETTY_NAME=\"Debian\"\nVERSION_CODENAME=trixie\nID=debian\n";
        assert_eq!(suite(debian).unwrap().as_str(), "trixie");
        assert_eq!(suite("ID=ubuntu\nVERSION_CODENAME=noble\n"), None);
        assert_eq!(suite("ID=\"debian\"\nVERSION_CODENAME=\"-x\"\n"), None);
        assert_eq!(suite(""), None);
    }

    #[test]
    fn mirrors_of_the_host_are_used_for_the_matching_release_only() {
        let targets = "http://m/debian/ bookworm main\nhttp://m/debian/ bookworm non-free\n\
            http://m/security/ bookworm-security main\nhttp://m/debian/ bookworm main\n\
            file:/srv/debian/ bookworm-updates main\nhttp://m/debian/ bookworm-backports main\n";
        let wanted =
            ["deb http://m/debian/ bookworm main", "deb http://m/security/ bookworm-security main"];
        assert_eq!(lines(targets, "bookworm"), wanted);
        assert!(lines(targets, "trixie").is_empty());
        assert!(lines("http://m/security/ x-security main\n", "x").is_empty());
    }
}
