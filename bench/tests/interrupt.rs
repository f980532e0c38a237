//! A benchmark stops everything it has started when it gets a signal.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sandbox_tests::wait::wait_for;

/// Longer than a server takes to start or stop on a busy machine.
const DEADLINE: Duration = Duration::from_mins(1);

/// A server that a benchmark has started, and its data directory.
struct Server {
    process: PathBuf,
    data: PathBuf,
}

#[test]
fn a_benchmark_that_is_ended_leaves_no_server_and_no_directory() {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_sandbox-bench"));
    assert!(program.with_file_name("sandboxd").exists(), "cargo build --workspace --bins makes it");
    let results = tempfile::tempdir().unwrap();
    let mut bench = Command::new(program)
        .args(["queue", "--results"])
        .arg(results.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = wait_for(DEADLINE, || server_of(&bench));
    let id = Pid::from_raw(bench.id().cast_signed()).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    let ended = wait_for(DEADLINE, || bench.try_wait().unwrap());
    let server = server.expect("the benchmark starts a server");
    assert_eq!(ended.and_then(|status| status.code()), Some(128 + 15));
    assert!(!server.process.exists(), "the server still runs");
    assert!(!server.data.exists(), "{} is still there", server.data.display());
}

/// The server that is a child of the benchmark, once there is one with a data directory.
fn server_of(bench: &Child) -> Option<Server> {
    let children = format!("/proc/{id}/task/{id}/children", id = bench.id());
    let children = fs::read_to_string(children).ok()?;
    children.split_ascii_whitespace().find_map(|child| {
        let process = PathBuf::from(format!("/proc/{child}"));
        let line = fs::read_to_string(process.join("cmdline")).ok()?;
        let data = line.split('\0').skip_while(|word| *word != "--data-dir").nth(1)?;
        let data = PathBuf::from(data);
        data.join("sandboxd.lock").exists().then_some(Server { process, data })
    })
}
