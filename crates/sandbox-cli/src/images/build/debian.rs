use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use crate::args::Suite;

const NEWEST_KNOWN: &str = "bookworm";

/// The release of this host if it is Debian's, and else one that has what recipes ask for.
pub(super) fn suite_of_host() -> Suite {
    let told = fs::read_to_string("/etc/os-release").unwrap_or_default();
    suite(&told).or_else(|| NEWEST_KNOWN.parse().ok()).expect("the name of a release")
}

fn suite(os_release: &str) -> Option<Suite> {
    let value = |key: &str| {
        let mut lines = os_release.lines();
        let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(value.trim_matches(['"', '\'']))
    };
    (value("ID")? == "debian").then(|| value("VERSION_CODENAME")?.parse().ok()).flatten()
}

/// Where this host gets the packages of a release from. None if it does not: then mmdebstrap knows where they are.
pub(super) fn sources(suite: &Suite) -> Vec<String> {
    let mut command = Command::new("apt-get");
    command.args(["indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)"]);
    // Those of others can have releases of the same name.
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
    let mut is_whole = false;
    for line in targets.lines() {
        let mut words = line.split_whitespace();
        let (Some(address), Some(release), Some("main")) =
            (words.next(), words.next(), words.next())
        else {
            continue;
        };
        // A directory of this host is not there inside.
        if address.starts_with("http") && parts.iter().any(|part| part == release) {
            is_whole |= release == suite;
            found.insert(format!("deb {address} {release} main"));
        }
    }
    if is_whole { found.into_iter().collect() } else { Vec::new() }
}

/// The call of mmdebstrap, but for the last arguments: the release, where to, where from.
pub(super) fn mmdebstrap(packages: &BTreeSet<String>) -> Command {
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    let mut command = if rustix::process::geteuid().is_root() {
        // It mounts the host's devices in what it builds. Nobody else is to see that, or to find it mounted when
        // mmdebstrap was killed; others than root have a namespace anyway.
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--", "mmdebstrap"]);
        command
    } else {
        Command::new("mmdebstrap")
    };
    command
        // What Debian is never without, and no package manager: nobody can install anything in an image.
        .arg("--variant=essential")
        .arg(format!("--include={}", packages.join(",")))
        // What is half built when the power fails is built again.
        .arg("--dpkgopt=force-unsafe-io")
        // Devices are not taken by the store; and tidying up is ours, so that nothing changes after that.
        .arg("--skip=output/dev,cleanup")
        .arg("--format=tar")
        .env("LC_ALL", "C.UTF-8");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_of_a_host_is_that_of_debian_or_none() {
        let debian = "PRETTY_NAME=\"Debian\"\nVERSION_CODENAME=trixie\nID=debian\n";
        assert_eq!(suite(debian).unwrap().as_str(), "trixie");
        assert_eq!(suite("ID=ubuntu\nVERSION_CODENAME=noble\n"), None);
        assert_eq!(suite("ID=\"debian\"\nVERSION_CODENAME=\"-x\"\n"), None);
        assert_eq!(suite(""), None);
    }

    #[test]
    fn mirrors_of_the_host_are_used_for_its_release_only() {
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
