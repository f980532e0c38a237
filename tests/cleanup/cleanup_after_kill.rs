//! A supervisor that is killed takes everything with it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};
use sandbox::Sandbox;
use sandbox_tests::backend::{engine, named};
use sandbox_tests::process::{Process, adopt_orphans, descendants, wait_for_no_descendants};
use sandbox_tests::residue::{Residue, cgroups_of};
use sandbox_tests::wait::{wait_for, wait_until_empty};
use tempfile::TempDir;

const KINDS: &[&str] = &["busy", "sleeping", "stopped", "forking", "deaf", "writing", "brief"];
const ROUNDS: usize = 50;
const CONTAINER_ROUNDS: usize = 20;
/// With another program in the same backend.
const VARIANT_ROUNDS: usize = 6;
/// Everything of a dead supervisor is gone by then, on a machine with other things to do.
const SOON: Duration = Duration::from_secs(30);

/// A supervisor and what it does.
struct Doomed {
    process: Child,
    /// Whatever it puts into files of its own goes here.
    temporary: TempDir,
    story: String,
}

impl Doomed {
    fn start(kind: &str, parallel: usize) -> Self {
        Self::start_behind("native", kind, parallel)
    }

    fn start_behind(isolation: &str, kind: &str, parallel: usize) -> Self {
        let temporary = tempfile::tempdir().expect("there is room for temporary files");
        let process = Command::new(env!("CARGO_BIN_EXE_doomed-supervisor"))
            .args([kind, &parallel.to_string(), isolation])
            .env("TMPDIR", temporary.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the supervisor can be started");
        let story = format!("{parallel} {kind}");
        Self { process, temporary, story }
    }

    /// Waits until its sandbox stands.
    fn wait_until_ready(&mut self) {
        let output = self.process.stdout.take().expect("its output is a pipe");
        let mut line = String::new();
        let read = BufReader::new(output).read_line(&mut line);
        read.expect("the supervisor's output can be read");
        assert_eq!(line, "ready\n", "{}", self.story);
    }

    /// Kills it without warning and gives back its id.
    fn kill(mut self) -> u32 {
        let id = self.process.id();
        self.process.kill().expect("a child can be killed");
        self.process.wait().expect("a child can be waited for");
        let files = std::fs::read_dir(self.temporary.path()).expect("the directory is still there");
        assert_eq!(files.count(), 0, "{} left temporary files", self.story);
        id
    }
}

/// A whole number of microseconds up to 60 milliseconds.
fn random_pause() -> Duration {
    let mut bytes = [0; 4];
    getrandom(&mut bytes, GetRandomFlags::empty()).expect("the kernel has random numbers");
    Duration::from_micros(u64::from(u32::from_ne_bytes(bytes) % 60_000))
}

/// No process of the dead supervisor is left, and its cgroups are empty.
fn assert_no_process_left(story: &str) {
    let left = wait_for_no_descendants(SOON);
    assert!(left.is_empty(), "{story}: {left:#?}");
}

fn wait_until_gone(id: u32) -> Vec<PathBuf> {
    wait_until_empty(SOON, || cgroups_of(id))
}

/// The moment of death is random from the very start of the process, or from the moment its sandbox stands.
/// Until then there is no launcher that could remove a cgroup with which the host is being probed: the
/// next start does. From then on nothing may be left, whether anybody starts again or not.
#[test]
fn cleanup_after_supervisors_killed_at_random_moments() {
    adopt_orphans();
    let before = Residue::count();
    let mut left_behind = Vec::new();
    for round in 0..ROUNDS {
        let kind = KINDS[round % KINDS.len()];
        let mut doomed = Doomed::start(kind, 1 + round % 3);
        let stands = round % 2 == 0;
        if stands {
            doomed.wait_until_ready();
        }
        let pause = random_pause();
        let story = format!("round {round}, {}, killed after {pause:?}", doomed.story);
        std::thread::sleep(pause);
        let id = doomed.kill();
        assert_no_process_left(&story);
        if stands {
            let left = wait_until_gone(id);
            if !left.is_empty() {
                left_behind.push((story.clone(), left));
            }
        }
        if !cgroups_of(id).is_empty() {
            drop(Sandbox::new().expect("a sandbox can be started"));
        }
        let left = wait_until_gone(id);
        assert!(left.is_empty(), "{story}: {left:#?}");
    }
    before.assert_returns("fifty dead supervisors");
    assert!(left_behind.is_empty(), "cgroups without their supervisor: {left_behind:#?}");
}

/// The same with containers, whose runtime is a process of its own: whatever it was at, its container ends when the
/// agent notices, and the next start removes the rest.
#[test]
fn cleanup_after_supervisors_of_runc_killed_at_random_moments() {
    after_supervisors_of("runc", KINDS, 3, CONTAINER_ROUNDS);
}

#[test]
fn cleanup_after_supervisors_of_crun_killed_at_random_moments() {
    after_supervisors_of("crun", KINDS, 3, VARIANT_ROUNDS);
}

#[test]
fn cleanup_after_supervisors_of_docker_killed_at_random_moments() {
    after_supervisors_of("docker", KINDS, 3, CONTAINER_ROUNDS);
}

#[test]
fn cleanup_after_supervisors_of_gvisor_behind_docker_killed_at_random_moments() {
    after_supervisors_of("docker-runsc", KINDS, 10, VARIANT_ROUNDS);
}

#[test]
fn cleanup_after_supervisors_of_gvisor_killed_at_random_moments() {
    after_supervisors_of("gvisor", KINDS, 10, CONTAINER_ROUNDS);
}

/// Supervisors of instances, in which processes hide and some are not waited for.
const INSTANCES: &[&str] = &["instance"];

#[test]
fn cleanup_after_supervisors_of_native_instances_killed_at_random_moments() {
    after_supervisors_of("native", INSTANCES, 1, CONTAINER_ROUNDS);
}

#[test]
fn cleanup_after_supervisors_of_runc_instances_killed_at_random_moments() {
    after_supervisors_of("runc", INSTANCES, 3, VARIANT_ROUNDS);
}

#[test]
fn cleanup_after_supervisors_of_docker_instances_killed_at_random_moments() {
    after_supervisors_of("docker", INSTANCES, 3, VARIANT_ROUNDS);
}

/// Directories of a dead supervisor of containers, and ids that it had. Others may have theirs at the same time.
fn left_on_host(id: u32) -> Vec<PathBuf> {
    let places = ["/run/sandbox-run-oci", "/run/sandbox-run-oci/ids", "/run/sandbox-run-docker"];
    let own = format!("sandbox-run.{id}.");
    let paths = places.iter().filter_map(|directory| std::fs::read_dir(directory).ok());
    let paths = paths.flat_map(Iterator::flatten).map(|entry| entry.path());
    let is_own = |path: &Path| path.to_string_lossy().contains(&own);
    paths
        .filter(|path| is_own(path) || std::fs::read_link(path).is_ok_and(|owner| is_own(&owner)))
        .collect()
}

/// `patience` is how much longer than a native sandbox it takes to start.
fn after_supervisors_of(name: &str, kinds: &[&str], patience: u32, rounds: usize) {
    let backend = named(name);
    if !backend.is_here() {
        return;
    }
    adopt_orphans();
    // The Engine's client opens something once that stays open as long as this process is there.
    drop((backend.choose)(Sandbox::builder()).build().expect("a sandbox can be started"));
    let before = Residue::count();
    for round in 0..rounds {
        let kind = kinds[round % kinds.len()];
        let mut doomed = Doomed::start_behind(name, kind, 1 + round % 3);
        if round % 3 > 0 {
            doomed.wait_until_ready();
            let has_sandboxes = kind != "instance" || !cgroups_of(doomed.process.id()).is_empty();
            assert!(has_sandboxes, "{}: there is nothing to clean up", doomed.story);
        }
        let pause = random_pause() * patience;
        let story = format!("round {round}, {} with {name}, killed after {pause:?}", doomed.story);
        std::thread::sleep(pause);
        let id = doomed.kill();
        assert_no_process_left(&story);
        let next = (backend.choose)(Sandbox::builder()).build();
        drop(next.expect("a sandbox can be started"));
        let left = wait_until_gone(id);
        assert!(left.is_empty(), "{story}: {left:#?}");
        let left = left_on_host(id);
        assert!(left.is_empty(), "{story}: {left:#?}");
        let left = containers_of_the_engine();
        assert!(!left.contains(&format!("sandbox-run.{id}.")), "{story}: {left}");
    }
    before.assert_returns("dead supervisors of containers");
}

/// What the Docker Engine of the tests has, if there is one.
fn containers_of_the_engine() -> String {
    let Some(host) = engine() else { return String::new() };
    let mut docker = Command::new("docker");
    docker.args(["--host", &host, "ps", "--all", "--format", "{{.Label \"run.sandbox.owner\"}}"]);
    let listed = docker.output().expect("the Engine's client can be started");
    assert!(listed.status.success(), "{listed:?}");
    String::from_utf8_lossy(&listed.stdout).into_owned()
}

/// While a program runs and nothing else goes on, the launcher knows of everything: it removes it all,
/// with no help from a later start.
#[test]
fn cleanup_after_a_supervisor_killed_at_rest_needs_no_later_start() {
    adopt_orphans();
    for kind in ["busy", "sleeping", "stopped", "deaf"] {
        let mut doomed = Doomed::start(kind, 2);
        doomed.wait_until_ready();
        let id = doomed.process.id();
        wait_until_at_rest(id);
        doomed.kill();
        assert_no_process_left(kind);
        let left = wait_until_gone(id);
        assert!(left.is_empty(), "{kind}: {left:#?}");
    }
}

/// With both dead no process is left to remove a cgroup; the kernel ends the processes all the same, and
/// the next start removes the rest.
#[test]
fn cleanup_after_supervisor_and_launcher_are_killed_together() {
    adopt_orphans();
    for kind in KINDS {
        let mut doomed = Doomed::start(kind, 2);
        doomed.wait_until_ready();
        let id = doomed.process.id();
        wait_until_at_rest(id);
        let launcher = launcher_of(id);
        launcher.kill();
        doomed.kill();
        assert_no_process_left(kind);
        drop(Sandbox::new().expect("a sandbox can be started"));
        let left = wait_until_gone(id);
        assert!(left.is_empty(), "{kind}: {left:#?}");
    }
}

fn launcher_of(supervisor: u32) -> Process {
    let supervisor = i32::try_from(supervisor).expect("process ids are small");
    let mut children = descendants().into_iter().filter(|process| process.parent == supervisor);
    children.next().expect("a supervisor has a launcher")
}

/// Its programs run, its spare slots are made. Those that never rest are taken as they are.
fn wait_until_at_rest(supervisor: u32) {
    let mut seen = Vec::new();
    let mut times = 0;
    wait_for(Duration::from_secs(2), || {
        let now = cgroups_of(supervisor);
        times = if now == seen && !now.is_empty() { times + 1 } else { 0 };
        seen = now;
        (times >= 50).then_some(())
    });
    assert!(!seen.is_empty() || !rustix::process::geteuid().is_root(), "there are no cgroups");
}
