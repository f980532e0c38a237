//! A real `sandboxd`, started for one benchmark, with its data in a directory that goes when it does.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use sandbox_tests::wait::wait_for;
use serde_json::Value;
use tempfile::TempDir;

use crate::interrupt::{OnInterrupt, stop_child};

/// A server that has not started or stopped by then never does.
const START_TIMEOUT: Duration = Duration::from_secs(30);

const SETTINGS: [(&str, &str); 2] = [("SANDBOXD_LISTEN", "127.0.0.1:0"), ("SANDBOXD_LOG", "json")];

/// Every request counts, and none is refused for being one of many.
const UNLIMITED: [(&str, &str); 4] = [
    ("SANDBOXD_REQUESTS_PER_MINUTE", "1000000000"),
    ("SANDBOXD_BURST", "1000000000"),
    ("SANDBOXD_QUEUE_BOUND", "100000"),
    ("SANDBOXD_QUOTA_PER_KEY", "100000"),
];

/// A server that runs. It is killed if it is forgotten.
pub(crate) struct Daemon {
    _on_interrupt: [OnInterrupt; 2],
    process: Child,
    address: SocketAddr,
    place: TempDir,
}

impl Daemon {
    /// Starts a server that limits no client, with further settings, and waits until it listens.
    pub(crate) fn start(program: &Path, settings: &[(&str, String)]) -> anyhow::Result<Self> {
        let settings = settings.iter().map(|(name, value)| (*name, value.as_str()));
        Self::start_in(new_place()?, program, UNLIMITED.into_iter().chain(settings))
    }

    /// Starts one with the limits that a server has by default, and a key for each of these names.
    pub(crate) fn start_with_keys<const N: usize>(
        program: &Path,
        names: [&str; N],
    ) -> anyhow::Result<(Self, [String; N])> {
        let place = new_place()?;
        let mut keys = [const { String::new() }; N];
        for (key, name) in keys.iter_mut().zip(names) {
            *key = create_key(program, place.path(), name)?;
        }
        Ok((Self::start_in(place, program, [])?, keys))
    }

    fn start_in<'a>(
        place: TempDir,
        program: &Path,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> anyhow::Result<Self> {
        let log = File::create(log_in(&place)).context("make a file for the server's log")?;
        let process = Command::new(program)
            .arg("--data-dir")
            .arg(place.path())
            // The user's own configuration file is not read.
            .current_dir(place.path())
            .env("XDG_CONFIG_HOME", place.path())
            .envs(SETTINGS)
            .envs(settings)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let unknown = SocketAddr::from(([127, 0, 0, 1], 0));
        let id = process.id();
        let on_interrupt =
            [OnInterrupt::remove(place.path()), OnInterrupt::run(move || stop_child(id))];
        let mut daemon = Self { _on_interrupt: on_interrupt, process, address: unknown, place };
        daemon.address = daemon.wait_until_listening()?;
        Ok(daemon)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw).context("it has an id")?;
        kill_process(id, Signal::TERM).context("ask the server to stop")?;
        let status = wait_for(START_TIMEOUT, || self.process.try_wait().transpose());
        let status =
            status.with_context(|| format!("the server does not stop:\n{}", self.log()))??;
        ensure!(status.success(), "the server ended with {status}:\n{}", self.log());
        Ok(())
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(log_in(&self.place)).unwrap_or_default()
    }

    fn wait_until_listening(&mut self) -> anyhow::Result<SocketAddr> {
        // Nothing comes from one that has ended.
        let found = wait_for(START_TIMEOUT, || match self.process.try_wait() {
            Ok(None) => self.log().lines().find_map(address_in).map(Some),
            _ => Some(None),
        });
        found.flatten().with_context(|| format!("the server does not start:\n{}", self.log()))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // One that has ended already needs no killing.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The `sandboxd` to start: this one, or the one that was built beside this program.
pub(crate) fn program(given: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    given.cloned().map_or_else(beside_us, Ok)
}

pub(crate) fn beside_us() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("find this program")?.with_file_name("sandboxd");
    ensure!(
        program.exists(),
        "{} is missing: cargo build --release -p sandbox-server makes it",
        program.display()
    );
    Ok(program)
}

fn new_place() -> anyhow::Result<TempDir> {
    tempfile::tempdir().context("make a directory for the server")
}

fn create_key(program: &Path, data: &Path, name: &str) -> anyhow::Result<String> {
    let created = Command::new(program)
        .args(["keys", "create", "--name", name, "--data-dir"])
        .arg(data)
        .current_dir(data)
        .env("XDG_CONFIG_HOME", data)
        .output()
        .context("create a key")?;
    ensure!(created.status.success(), "no key: {}", String::from_utf8_lossy(&created.stderr));
    Ok(String::from_utf8(created.stdout)?.trim().to_owned())
}

fn log_in(place: &TempDir) -> PathBuf {
    place.path().join("log")
}

/// The address in a line of the log, if it has one.
fn address_in(line: &str) -> Option<SocketAddr> {
    let fields: Value = serde_json::from_str(line).ok()?;
    fields["address"].as_str()?.parse().ok()
}
