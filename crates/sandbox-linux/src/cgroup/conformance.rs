//! Tests that every cgroup implementation must pass, run on whatever [`Hierarchy::detect`] finds.
//!
//! The children are this test program itself, started again to run a single ignored test. They wait
//! for a line on standard input, so that they can be put into the cgroup first.

use std::io::{Read, Write};
use std::ops::Deref;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::sched_getaffinity;

use super::kill::wait_until_ready;
use super::*;

const ROLE: &str = "SANDBOX_RUN_CGROUP_TEST_ROLE";
const MIB: u64 = 1 << 20;
const EVENT_TIMEOUT: Duration = Duration::from_secs(30);

/// A cgroup that is emptied and removed however the test ends.
struct Held(Box<dyn Cgroup>);

impl Deref for Held {
    type Target = dyn Cgroup;
    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.remove();
    }
}

/// A child that is killed and reaped however the test ends.
struct Started(Child);

impl Started {
    fn process(&self) -> u32 {
        self.0.id()
    }

    fn begin(&mut self) {
        self.0.stdin.take().unwrap().write_all(b"\n").unwrap();
    }

    fn end(&mut self) -> ExitStatus {
        let mut status = None;
        wait_for("the child to end", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + EVENT_TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The hierarchy and a cgroup in it; `None`, with a message, on a host without.
fn fresh() -> Option<(Hierarchy, Held)> {
    let hierarchy = Hierarchy::detect();
    if hierarchy.version() == Version::None {
        skip(&hierarchy.reasons().join(" "));
        return None;
    }
    let cgroup = Held(hierarchy.create().unwrap());
    Some((hierarchy, cgroup))
}

#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs the tests says whether skipping is fine"
)]
pub(crate) fn skip(reason: &str) {
    assert!(std::env::var_os("SANDBOX_RUN_NO_SKIPPED_TESTS").is_none(), "{reason}");
    eprintln!("skipped: {reason}");
}

fn command(role: &str) -> Command {
    let module = module_path!().split_once("::").unwrap().1;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([&format!("{module}::the_part_of_a_child"), "--exact", "--ignored", "--nocapture"])
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Starts a child in a cgroup. It does nothing before [`Started::begin`].
fn start(role: &str, cgroup: &dyn Cgroup) -> Started {
    let child = Started(command(role).spawn().unwrap());
    let text = child.process().to_string();
    let doors = match cgroup.entry().unwrap() {
        Entry::Write(doors) => doors,
        Entry::CloneInto(directory) => vec![open_at(&directory, "cgroup.procs", OFlags::WRONLY)],
        Entry::Nothing => panic!("there is no cgroup to enter"),
    };
    for door in doors {
        rustix::io::write(&door, text.as_bytes()).unwrap();
    }
    child
}

fn open_at(directory: &OwnedFd, path: &str, flags: OFlags) -> OwnedFd {
    rustix::fs::openat(directory, path, flags | OFlags::CLOEXEC, Mode::empty()).unwrap()
}

/// The text of the first of some files that one of the cgroup's directories has.
fn control_file(cgroup: &dyn Cgroup, files: &[&str]) -> String {
    for Removal { parent, name } in cgroup.removal().unwrap() {
        for file in files {
            let path = format!("{}/{file}", name.to_str().unwrap());
            let opened = rustix::fs::openat(&parent, path, OFlags::RDONLY, Mode::empty());
            if let Ok(descriptor) = opened {
                let mut text = String::new();
                std::fs::File::from(descriptor).read_to_string(&mut text).unwrap();
                return text;
            }
        }
    }
    panic!("none of {files:?} is there");
}

fn limits(memory_bytes: Option<u64>, pids: Option<u64>, cpu_millis: Option<u32>) -> CgroupLimits {
    CgroupLimits { memory_bytes, pids, cpu_millis }
}

#[test]
#[ignore = "not a test of its own: the part that the children of the others play"]
#[expect(clippy::disallowed_methods, reason = "a child takes its role and gives its answer so")]
fn the_part_of_a_child() {
    let role = std::env::var(ROLE).unwrap_or_default();
    let (role, number) = role.split_once(' ').unwrap_or((&role, "0"));
    let _ = std::io::stdin().read(&mut [0]);
    match role {
        "allocate" => {
            let mut memory = vec![0_u8; number.parse::<usize>().unwrap()];
            memory.iter_mut().step_by(1024).for_each(|byte| *byte = 1);
            std::process::exit(i32::from(std::hint::black_box(memory)[0] - 1));
        }
        "threads" => {
            for _ in 0..number.parse::<u32>().unwrap() {
                if let Err(error) = std::thread::Builder::new().spawn(std::thread::park) {
                    std::process::exit(error.raw_os_error().unwrap_or(-1));
                }
            }
            std::process::exit(0);
        }
        "spin" => loop {
            std::hint::spin_loop();
        },
        "park" => loop {
            std::thread::park();
        },
        "breed" => loop {
            // Failing is what happens at the limit; go on all the same.
            if let Ok(child) = command("park").stdin(Stdio::null()).spawn() {
                drop(child);
            }
        },
        "detect" => std::process::exit(match Hierarchy::detect().version() {
            Version::V2 => 2,
            Version::V1 => 1,
            Version::None => 0,
        }),
        other => panic!("there is no role {other:?}"),
    }
}

#[test]
fn memory_beyond_the_limit_is_killed_counted_and_announced() {
    let Some((hierarchy, cgroup)) = fresh() else {
        return;
    };
    cgroup.set_limits(&limits(Some(64 * MIB), None, None)).unwrap();
    let mut watch = cgroup.oom_watch().unwrap().unwrap();
    assert!(!watch.triggered());
    let mut child = start(&format!("allocate {}", 256 * MIB), &*cgroup);
    assert_eq!(cgroup.oom_kills().unwrap(), 0);
    child.begin();
    let ready =
        wait_until_ready(watch.fd(), watch.events(), Instant::now() + EVENT_TIMEOUT).unwrap();
    assert!(ready, "the watch was not told");
    wait_for("the kill to be counted", || watch.triggered());
    assert_eq!(child.end().signal(), Some(libc::SIGKILL));
    let kills = cgroup.oom_kills().unwrap();
    // v2 kills a process, then the group it is in, and counts the first one both times.
    let most = if hierarchy.version() == Version::V2 { 2 } else { 1 };
    assert!((1..=most).contains(&kills), "{kills}");
    let _ = watch.triggered();
    assert!(!watch.triggered(), "what was told is told again");
    let peak = cgroup.usage().unwrap().memory_peak.unwrap();
    assert!(peak <= 64 * MIB && peak > 60 * MIB, "{peak}");
    cgroup.remove().unwrap();
    assert!(!watch.triggered(), "the removal was taken for a kill");
}

#[test]
fn memory_within_the_limit_is_left_alone_and_its_peak_can_be_reset() {
    let Some((hierarchy, cgroup)) = fresh() else {
        return;
    };
    cgroup.set_limits(&limits(Some(512 * MIB), None, None)).unwrap();
    let mut child = start(&format!("allocate {}", 256 * MIB), &*cgroup);
    child.begin();
    assert_eq!(child.end().code(), Some(0));
    assert_eq!(cgroup.oom_kills().unwrap(), 0);
    if !hierarchy.enforces().memory_peak {
        return skip("this kernel records no memory peak");
    }
    let peak = cgroup.usage().unwrap().memory_peak.unwrap();
    assert!(peak >= 256 * MIB, "{peak}");
    cgroup.reset_peak().unwrap();
    let after = cgroup.usage().unwrap().memory_peak.unwrap();
    if peak_can_be_reset(&*cgroup) {
        assert!(after < 128 * MIB, "{after}");
    } else {
        assert!(after >= peak, "{after}");
    }
}

/// Kernels that cannot reset the peak do not offer the file for writing.
fn peak_can_be_reset(cgroup: &dyn Cgroup) -> bool {
    cgroup.removal().unwrap().iter().any(|Removal { parent, name }| {
        ["memory.peak", "memory.max_usage_in_bytes"].iter().any(|file| {
            let path = format!("{}/{file}", name.to_str().unwrap());
            rustix::fs::statat(parent, path, AtFlags::empty())
                .is_ok_and(|stat| Mode::from_raw_mode(stat.st_mode).contains(Mode::WUSR))
        })
    })
}

#[test]
fn a_memory_limit_can_be_lowered_and_raised() {
    let Some((_, cgroup)) = fresh() else { return };
    for mebibytes in [64, 256, 32] {
        cgroup.set_limits(&limits(Some(mebibytes * MIB), None, None)).unwrap();
        let text = control_file(&*cgroup, &["memory.max", "memory.limit_in_bytes"]);
        assert_eq!(text.trim_end(), (mebibytes * MIB).to_string());
    }
}

#[test]
fn processes_beyond_the_limit_are_refused_and_within_it_are_not() {
    let Some((hierarchy, cgroup)) = fresh() else {
        return;
    };
    for (limit, expected) in [(10, libc::EAGAIN), (100, 0)] {
        cgroup.set_limits(&limits(None, Some(limit), None)).unwrap();
        let mut child = start("threads 50", &*cgroup);
        child.begin();
        assert_eq!(child.end().code(), Some(expected), "with a limit of {limit}");
    }
    if hierarchy.enforces().pids_peak {
        let peak = cgroup.usage().unwrap().pids_peak.unwrap();
        assert!((51..=100).contains(&peak), "{peak}");
    }
}

#[test]
fn members_and_what_they_start_are_bound_to_cpus_and_others_are_not() {
    let Some((hierarchy, cgroup)) = fresh() else {
        return;
    };
    let all = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap();
    let mut one = CpuSet::new();
    one.set(first);
    if !hierarchy.enforces().cpu_quota || one == all {
        return skip("there is no cpu controller, or one CPU only");
    }
    let other = Held(hierarchy.create().unwrap());
    let unbound = start("park", &*other);
    cgroup.set_limits(&limits(None, Some(20), None)).unwrap();
    let mut parent = start("breed", &*cgroup);
    let cpus = |process: u32| {
        sched_getaffinity(Pid::from_raw(process.try_into().unwrap())).unwrap_or_default()
    };
    let have = |cpus_of_all: &CpuSet| {
        let members = cgroup.processes().unwrap();
        members.len() > 3 && members.into_iter().all(|member| cpus(member) == *cpus_of_all)
    };
    cgroup.bind(&one).unwrap();
    parent.begin();
    wait_for("its children to be bound", || have(&one));
    // While they start others.
    wait_for("all to be released", || cgroup.bind(&all).is_ok() && have(&all));
    wait_for("all to be bound again", || cgroup.bind(&one).is_ok() && have(&one));
    assert_eq!(cpus(unbound.process()), all);
}

#[test]
fn a_cpu_quota_holds_a_spinning_process_back() {
    let Some((hierarchy, cgroup)) = fresh() else {
        return;
    };
    if !hierarchy.enforces().cpu_quota {
        return skip("there is no cpu controller");
    }
    let throttled = || {
        let text = control_file(&*cgroup, &["cpu.stat"]);
        parse::keyed(&text, "nr_throttled").unwrap()
    };
    cgroup.set_limits(&limits(None, None, Some(200))).unwrap();
    let mut child = start("spin", &*cgroup);
    let (before, begun) = (cgroup.cpu_total().unwrap(), Instant::now());
    child.begin();
    wait_for("five throttled periods", || throttled() >= 5);
    let used = cgroup.cpu_total().unwrap().saturating_sub(before);
    let ratio = used.as_secs_f64() / begun.elapsed().as_secs_f64();
    assert!(ratio < 0.6, "used {ratio} of a CPU");
    let usage = cgroup.usage().unwrap();
    assert!(usage.cpu_total >= before + used);
    assert!(usage.cpu_user.unwrap() + usage.cpu_system.unwrap() > Duration::ZERO);
}

#[test]
fn killing_ends_even_a_fork_bomb() {
    let Some((_, cgroup)) = fresh() else { return };
    cgroup.set_limits(&limits(None, Some(40), None)).unwrap();
    let mut child = start("breed", &*cgroup);
    child.begin();
    wait_for("the family to grow", || cgroup.processes().unwrap().len() >= 8);
    cgroup.kill().unwrap();
    assert_eq!(child.end().signal(), Some(libc::SIGKILL));
    assert!(cgroup.processes().unwrap().is_empty());
    cgroup.kill().unwrap();
    cgroup.remove().unwrap();
}

#[test]
fn a_command_can_begin_its_life_inside_with_all_that_it_starts() {
    let Some((_, cgroup)) = fresh() else { return };
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 60 & echo $!; wait"]).stdout(Stdio::piped());
    cgroup.entry().unwrap().admit_at_start(&mut command).unwrap();
    let mut child = Started(command.spawn().unwrap());
    let mut said = [0; 16];
    let count = child.0.stdout.take().unwrap().read(&mut said).unwrap();
    let grandchild: u32 = std::str::from_utf8(&said[..count]).unwrap().trim().parse().unwrap();
    let mut inside = cgroup.processes().unwrap();
    inside.sort_unstable();
    let mut expected = [child.process(), grandchild];
    expected.sort_unstable();
    assert_eq!(inside, expected);
}

#[test]
fn removing_an_occupied_cgroup_names_its_members() {
    let Some((_, cgroup)) = fresh() else { return };
    let child = start("park", &*cgroup);
    let error = cgroup.remove().unwrap_err();
    let CgroupError::LeftBehind(left) = &error else { panic!("{error}") };
    assert_eq!(left.len(), cgroup.removal().unwrap().len());
    assert!(error.to_string().contains(&child.process().to_string()), "{error}");
    cgroup.kill().unwrap();
    cgroup.remove().unwrap();
    let gone = cgroup.removal().unwrap().into_iter().all(|Removal { parent, name }| {
        rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_err_and(|errno| errno == Errno::NOENT)
    });
    assert!(gone);
}

/// Directories beside a cgroup, removed however the test ends.
struct Beside(Vec<(OwnedFd, String)>);

impl Beside {
    fn make(cgroup: &dyn Cgroup, name: &str) -> Beside {
        let mut made = Beside(Vec::new());
        for Removal { parent, .. } in cgroup.removal().unwrap() {
            rustix::fs::mkdirat(&parent, name, Mode::RWXU).unwrap();
            made.0.push((parent, name.to_owned()));
        }
        made
    }

    fn join(&self, process: u32) {
        for (parent, name) in &self.0 {
            let door = open_at(parent, &format!("{name}/cgroup.procs"), OFlags::WRONLY);
            rustix::io::write(door, process.to_string().as_bytes()).unwrap();
        }
    }

    fn all_exist(&self) -> bool {
        self.0.iter().all(|(parent, name)| {
            rustix::fs::statat(parent, name.as_str(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
        })
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        for (parent, name) in &self.0 {
            let deadline = Instant::now() + EVENT_TIMEOUT;
            while rustix::fs::unlinkat(parent, name.as_str(), AtFlags::REMOVEDIR)
                == Err(Errno::BUSY)
                && Instant::now() < deadline
            {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

#[test]
fn a_sweep_takes_the_empty_leftovers_of_the_dead_and_nothing_else() {
    let Some((hierarchy, cgroup)) = fresh() else {
        return;
    };
    let empty = Beside::make(&*cgroup, "sandbox-run.4294967295.1.0");
    let occupied = Beside::make(&*cgroup, "sandbox-run.4294967295.1.1");
    let foreign = Beside::make(&*cgroup, "sandbox-run-of-somebody-else");
    let mut child = Started(command("park").spawn().unwrap());
    occupied.join(child.process());

    let outcome = hierarchy.sweep();

    assert!(!empty.all_exist());
    assert!(occupied.all_exist() && foreign.all_exist());
    assert!(child.0.try_wait().unwrap().is_none(), "a sweep must not kill");
    let mentions = |list: &[String], name: &str| list.iter().any(|path| path.ends_with(name));
    assert!(mentions(&outcome.removed, "4294967295.1.0"), "{outcome:?}");
    let (kept, reasons): (Vec<String>, Vec<String>) = outcome.kept.into_iter().unzip();
    assert!(mentions(&kept, "4294967295.1.1"));
    assert!(reasons.iter().any(|reason| reason.contains(&child.process().to_string())));
    let own = cgroup.removal().unwrap().pop().unwrap().name.into_string().unwrap();
    assert!(mentions(&kept, &own));
}

#[test]
fn detection_finds_the_same_again_and_leaves_no_cgroup() {
    let Some((hierarchy, cgroup)) = fresh() else {
        return;
    };
    assert!(hierarchy.enforces().memory && hierarchy.enforces().pids);
    assert!(hierarchy.describe().contains("cgroup v"));
    let mut child = Started(command("detect").spawn().unwrap());
    child.begin();
    let prefix = format!("sandbox-run.{}.", child.process());
    let expected = if hierarchy.version() == Version::V2 { 2 } else { 1 };
    assert_eq!(child.end().code(), Some(expected));
    for Removal { parent, .. } in cgroup.removal().unwrap() {
        let listing = open_at(&parent, ".", OFlags::RDONLY | OFlags::DIRECTORY);
        for entry in Dir::new(listing).unwrap() {
            let name = entry.unwrap().file_name().to_string_lossy().into_owned();
            assert!(!name.starts_with(&prefix), "{name}");
        }
    }
}

#[test]
fn going_without_cgroups_can_be_chosen_and_enforces_nothing() {
    let hierarchy = Hierarchy::none("tried nothing");
    assert_eq!(hierarchy.version(), Version::None);
    assert_eq!(hierarchy.enforces(), Enforces::default());
    assert_eq!(hierarchy.reasons(), ["tried nothing"]);
    assert!(matches!(hierarchy.create().unwrap().entry(), Ok(Entry::Nothing)));
}
