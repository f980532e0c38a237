//! Other sandboxes, each asked for what ours does as far as it can: its own namespaces, the host's `/usr`
//! read-only, no network, and memory, processes and CPU limited as ours are by default where it knows how to.
//!
//! [`oci`] writes bundles for runc, crun and runsc, [`docker`] starts an Engine with its own state.

mod docker;
mod oci;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use sandbox_tests::cache;

use super::contender::Contender;
use super::process::{Process, Words, must_work, words};
use super::runner::{Runner, Started};
use crate::cases::{BUBBLEWRAP, Run};
use docker::Docker;
use oci::Bundle;

/// Another sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Bubblewrap,
    Firejail,
    Crun,
    Runc,
    Runsc,
    Docker,
}

/// No profile of firejail's own: those are for named programs. The rest is every protection that it offers by option.
const FIREJAIL: &str = "/usr/bin/firejail --quiet --noprofile --net=none --private --private-dev --private-tmp \
    --seccomp --caps.drop=all --nonewprivs --rlimit-nproc=64 --";

impl Peer {
    pub(crate) const ALL: [Self; 6] =
        [Self::Bubblewrap, Self::Firejail, Self::Crun, Self::Runc, Self::Runsc, Self::Docker];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Firejail => "firejail",
            Self::Crun => "crun",
            Self::Runc => "runc",
            Self::Runsc => "runsc (gVisor)",
            Self::Docker => "docker run",
        }
    }

    pub(crate) fn contents(self) -> &'static str {
        match self {
            Self::Bubblewrap => {
                "bwrap --unshare-all with /usr read-only, /proc, /dev and /tmp; no limit, no filter"
            }
            Self::Firejail => {
                "no profile, no network, private home, /dev and /tmp, its default filter, no \
                 capabilities, processes limited; no memory or CPU limit"
            }
            Self::Crun => {
                "a bundle made before: own namespaces but for users, /usr read-only; memory, processes and \
                 CPU limited; no filter"
            }
            Self::Runc => "the same bundle",
            Self::Runsc => "the same bundle with room for its own threads; platform systrap",
            Self::Docker => {
                "docker run --rm with an Engine that runs already; the same limits, no capabilities, \
                 its default filter, /usr read-only as a volume"
            }
        }
    }

    /// Those that take so long that they have a turn in some rounds only.
    pub(crate) fn is_slow(self) -> bool {
        matches!(self, Self::Runsc | Self::Docker)
    }

    fn program(self) -> Option<PathBuf> {
        let unpacked = |path: &str| Some(cache::peers()?.join(path));
        let candidates = match self {
            Self::Bubblewrap => BUBBLEWRAP.split(' ').take(1).map(PathBuf::from).collect(),
            Self::Firejail => FIREJAIL.split(' ').take(1).map(PathBuf::from).collect(),
            Self::Crun => vec![PathBuf::from("/usr/bin/crun")],
            Self::Runc => vec![PathBuf::from("/usr/sbin/runc"), PathBuf::from("/usr/bin/runc")],
            Self::Runsc => [unpacked("gvisor/usr/bin/runsc"), Some("/usr/bin/runsc".into())]
                .into_iter()
                .flatten()
                .collect(),
            Self::Docker => unpacked("docker/usr/bin/docker").into_iter().collect(),
        };
        candidates.into_iter().find(|program| program.exists())
    }
}

/// A program for peers: a command that they see as the host does, and what it prints.
#[derive(Clone)]
pub(super) struct Guest {
    pub(super) name: &'static str,
    pub(super) command: Words,
    pub(super) expected: &'static str,
}

/// A peer with a program that it has run once.
type Ready<'a> = (Peer, Box<dyn Contender + 'a>);

/// The peers of this host, ready to run programs. Everything of theirs goes with it.
pub(super) struct Peers {
    place: PathBuf,
    found: Vec<(Peer, PathBuf)>,
    docker: Option<Docker>,
    /// For crun.
    runner: Option<Runner>,
    /// What is missing or does not work, and why.
    pub(super) missing: Vec<(Peer, String)>,
    /// What the others say they are.
    pub(super) versions: Vec<(Peer, String)>,
}

impl Peers {
    pub(super) fn none() -> Self {
        let (found, missing, versions) = (Vec::new(), Vec::new(), Vec::new());
        Self { place: PathBuf::new(), found, docker: None, runner: None, missing, versions }
    }

    /// Looks for them, and starts what has to run before. All they write is below `place`.
    pub(super) fn find(place: &Path) -> Self {
        let mut peers = Self { place: place.to_owned(), ..Self::none() };
        for peer in Peer::ALL {
            match peers.start(peer) {
                Ok((program, version)) => {
                    peers.found.push((peer, program));
                    peers.versions.push((peer, version));
                }
                Err(error) => peers.missing.push((peer, format!("{error:#}"))),
            }
        }
        peers
    }

    fn start(&mut self, peer: Peer) -> anyhow::Result<(PathBuf, String)> {
        let program = peer.program().context("not installed: scripts/setup bench gets it")?;
        let version =
            must_work(&words([program.to_string_lossy().as_ref(), "--version"]), &self.place)?;
        let version = version.lines().next().unwrap_or_default().to_owned();
        match peer {
            Peer::Crun => self.runner = Some(Runner::start_without_unified()?),
            Peer::Docker => self.docker = Some(Docker::start(&self.place.join("docker"))?),
            _ => {}
        }
        Ok((program, version))
    }

    /// Every peer that can run this program, most of them started by that runner. One that cannot is missing
    /// for it, with what it said.
    pub(super) fn contenders<'a>(
        &'a self,
        guest: &Guest,
        outside: &'a Runner,
    ) -> (Vec<Ready<'a>>, Vec<String>) {
        let (mut contenders, mut complaints) = (Vec::new(), Vec::new());
        for (peer, program) in &self.found {
            let contender = self.contender(*peer, program, guest, outside);
            match contender.and_then(|contender| contender.run().map(|_| contender)) {
                Ok(contender) => contenders.push((*peer, contender)),
                Err(error) => {
                    complaints.push(format!("{} with {}: {error:#}", peer.name(), guest.name));
                }
            }
        }
        (contenders, complaints)
    }

    fn contender<'a>(
        &'a self,
        peer: Peer,
        program: &Path,
        guest: &Guest,
        outside: &'a Runner,
    ) -> anyhow::Result<Box<dyn Contender + 'a>> {
        let command = &guest.command[0];
        ensure!(
            command.starts_with("/usr/") || command.starts_with("/bin/"),
            "{command} is outside /usr, which is all that it sees of the host"
        );
        let plain = |prefix: Words| {
            let commands = vec![[prefix, guest.command.clone()].concat()];
            let (directory, expected) = (self.place.clone(), guest.expected.into());
            let process = Process { commands, directory, expected };
            Box::new(Started { process, runner: outside })
        };
        let bundle = || Bundle::write(&self.place.join("bundles"), peer, program, guest);
        Ok(match peer {
            Peer::Bubblewrap => plain(words(BUBBLEWRAP.split(' '))),
            Peer::Firejail => plain(words(FIREJAIL.split(' '))),
            Peer::Docker => plain(self.docker.as_ref().context("its Engine runs")?.command()),
            Peer::Runc | Peer::Runsc => Box::new(Container { bundle: bundle()?, runner: outside }),
            Peer::Crun => {
                let runner = self.runner.as_ref().context("its runner runs")?;
                Box::new(Container { bundle: bundle()?, runner })
            }
        })
    }

    /// Stops what was started, and says what could not be.
    pub(super) fn stop(self) -> anyhow::Result<()> {
        self.docker.map_or(Ok(()), Docker::stop)
    }
}

/// Containers of a bundle, a new one each time.
struct Container<'a> {
    bundle: Bundle,
    runner: &'a Runner,
}

impl Contender for Container<'_> {
    fn run(&self) -> anyhow::Result<Run> {
        self.runner.run(&self.bundle.process())
    }
}
