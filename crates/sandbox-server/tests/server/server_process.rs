//! A `sandboxd` process for a test.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use sandbox_tests::process::descendants_of;
use sandbox_tests::residue::cgroups_of;
use sandbox_tests::wait::{wait_for, wait_until_empty};
use serde_json::{Value, json};

use crate::http::{Response, try_send};

/// Exceeds the time of short operations on a busy machine.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Practically no rate limit.
const SETTINGS: &[(&str, &str)] = &[
    ("SANDBOXD_LOG", "json"),
    ("SANDBOXD_REQUESTS_PER_MINUTE", "600000"),
    ("SANDBOXD_BURST", "100000"),
];

/// `sandboxd` with these arguments and this data directory.
pub(crate) fn command(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandboxd"));
    // The developer's own configuration file is not read.
    command.current_dir(data).env("XDG_CONFIG_HOME", data).stdin(Stdio::null());
    command.args(["--data-dir", data.to_str().expect("temporary paths are text")]).args(arguments);
    command
}

/// Runs a command, and returns its output.
pub(crate) fn output(data: &Path, arguments: &[&str]) -> Output {
    command(data, arguments).output().expect("sandboxd can be started")
}

/// Creates a key.
pub(crate) fn create_key(data: &Path, name: &str) -> String {
    let created = output(data, &["keys", "create", "--name", name]);
    assert!(created.status.success(), "{created:?}");
    String::from_utf8(created.stdout).expect("a key is text").trim_end().to_owned()
}

/// A running server. Dropping it kills the process.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: SocketAddr,
    log: Option<JoinHandle<String>>,
}

impl Server {
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_with(data, &[])
    }

    /// Starts a server with more variables, and waits until it listens.
    pub(crate) fn start_with(data: &Path, variables: &[(&str, &str)]) -> Self {
        let mut process = command(data, &["--listen", "127.0.0.1:0"])
            .envs(SETTINGS.iter().copied())
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("sandboxd can be started");
        let stderr = BufReader::new(process.stderr.take().expect("its log is a pipe"));
        let (sender, addresses): (Sender<SocketAddr>, Receiver<SocketAddr>) = channel();
        let log = std::thread::spawn(move || {
            let mut log = String::new();
            for line in stderr.lines() {
                let line = line.expect("the log is text");
                let fields: Value = serde_json::from_str(&line).unwrap_or_default();
                if let Some(address) = fields["address"].as_str() {
                    // Fails if the test has failed already.
                    let _ = sender.send(address.parse().expect("it is an address"));
                }
                log.push_str(&line);
                log.push('\n');
            }
            log
        });
        let Ok(address) = addresses.recv_timeout(WAIT_TIMEOUT) else {
            // Fails if it has ended already.
            let _ = process.kill();
            let _ = process.wait();
            panic!("sandboxd did not start:\n{}", log.join().expect("the log was read"));
        };
        Self { process, address, log: Some(log) }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let response = try_send(self.address, method, path, headers, body);
        response.unwrap_or_else(|| panic!("no response to {method} {path}"))
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.send("GET", path, &[], "")
    }

    /// Starts an asynchronous execution of Python code, and returns its id.
    pub(crate) fn accept(&self, code: &str) -> String {
        self.accept_in("python", code)
    }

    /// Starts an asynchronous execution, and returns its id.
    pub(crate) fn accept_in(&self, language: &str, code: &str) -> String {
        let body = json!({ "language": language, "code": code }).to_string();
        let response = self.send("POST", "/api/v1/execute?wait=false", &[], &body);
        assert_eq!(response.status, 202, "{response:?}");
        response.json()["id"].as_str().expect("an id is text").to_owned()
    }

    /// Waits for the final report.
    pub(crate) fn final_report(&self, id: &str) -> Value {
        let mut last = Value::Null;
        let found = wait_for(Duration::from_mins(1), || {
            last = self.get(&format!("/api/v1/execute/{id}?wait=10")).json();
            let is_final = !matches!(last["status"].as_str(), Some("queued" | "running") | None);
            is_final.then(|| last.clone())
        });
        found.unwrap_or_else(|| panic!("{id} never ended: {last}"))
    }

    /// Waits until an execution is running.
    pub(crate) fn wait_until_running(&self, id: &str) {
        let path = format!("/api/v1/execute/{id}");
        let running = wait_for(WAIT_TIMEOUT, || {
            (self.get(&path).json()["status"] == "running").then_some(())
        });
        assert!(running.is_some(), "{}", self.get(&path).body);
    }

    /// The number of established connections, from the kernel's table.
    pub(crate) fn connections(&self) -> usize {
        self.connections_where(|_| true)
    }

    /// The number of connections that the server has not accepted: they have no inode.
    pub(crate) fn waiting_connections(&self) -> usize {
        self.connections_where(|inode| inode == "0")
    }

    fn connections_where(&self, wanted: impl Fn(&str) -> bool) -> usize {
        const ESTABLISHED: &str = "01";
        let table = self.read_proc("net/tcp");
        let port = format!(":{:04X}", self.address.port());
        let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let ours = rows.filter(|row| row[1].ends_with(&port) && row[3] == ESTABLISHED);
        // While connections change, the table can contain one twice.
        ours.filter(|row| wanted(row[9])).map(|row| row[2].to_owned()).collect::<HashSet<_>>().len()
    }

    /// Peak resident memory, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// Anonymous resident memory, in bytes.
    pub(crate) fn anonymous_memory(&self) -> u64 {
        self.memory("RssAnon:")
    }

    fn memory(&self, kind: &str) -> u64 {
        let status = self.read_proc("status");
        let size = status.lines().find_map(|line| line.strip_prefix(kind));
        let kibibytes = size.and_then(|size| size.trim().strip_suffix(" kB")).expect("it is there");
        kibibytes.parse::<u64>().expect("it is a number") << 10
    }

    /// The number of open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.id()));
        open.expect("/proc is readable").count()
    }

    /// Limits the server to this many more descriptors, and returns the number of open ones.
    pub(crate) fn limit_descriptors(&self, more: usize) -> usize {
        let open = self.descriptors();
        let limit = Some((open + more) as u64);
        let limit = Rlimit { current: limit, maximum: limit };
        prlimit(Some(self.pid()), Resource::Nofile, limit).expect("the server is a child process");
        open
    }

    fn read_proc(&self, file: &str) -> String {
        let text = std::fs::read_to_string(format!("/proc/{}/{file}", self.id()));
        text.expect("/proc is readable")
    }

    /// Stops the server with SIGTERM, and returns its exit status and log.
    pub(crate) fn stop(mut self) -> (ExitStatus, String) {
        self.signal(Signal::TERM);
        let ended = wait_for(WAIT_TIMEOUT, || {
            self.process.try_wait().expect("the server is a child process")
        });
        (ended.expect("a server that is asked to stop does"), self.take_log())
    }

    /// Kills the server.
    pub(crate) fn kill(mut self) {
        self.signal(Signal::KILL);
        self.process.wait().expect("the server is a child process");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is our child and was not waited for");
    }

    fn pid(&self) -> Pid {
        let id = i32::try_from(self.process.id()).expect("process ids are small");
        Pid::from_raw(id).expect("no child has the id 0")
    }

    fn take_log(&mut self) -> String {
        let log = self.log.take().expect("the log is read once");
        log.join().expect("the log was read")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The processes of a server, to check later that they are gone.
pub(crate) struct Residue {
    server: u32,
    processes: Vec<i32>,
}

impl Residue {
    pub(crate) fn of(server: &Server) -> Self {
        let id = i32::try_from(server.id()).expect("process ids are small");
        let processes: Vec<_> = descendants_of(id).iter().map(|process| process.id).collect();
        assert!(!processes.is_empty(), "a server has a launcher at least");
        Self { server: server.id(), processes }
    }

    /// Asserts that no process, cgroup or mount of the server is left.
    pub(crate) fn assert_gone(&self) {
        let alive = || self.processes.iter().copied().filter(|id| is_alive(*id)).collect();
        let left: Vec<i32> = wait_until_empty(WAIT_TIMEOUT, alive);
        assert!(left.is_empty(), "processes {left:?} outlived their server");
        // A cgroup can be removed once it has no processes.
        let left = wait_until_empty(WAIT_TIMEOUT, || cgroups_of(self.server));
        assert!(left.is_empty(), "{left:#?} outlived their server");
        let mounts = sandbox_mounts();
        assert!(mounts.is_empty(), "{mounts:#?} can be seen outside of sandboxes");
    }
}

/// Whether a process runs. A zombie does not: its parent is not this test.
fn is_alive(id: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else {
        return false;
    };
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

/// Mounts of sandboxes in this mount namespace. There must be none: sandboxes have their own namespaces.
fn sandbox_mounts() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").expect("a process sees its mounts");
    let is_sandbox = |line: &&str| line.contains("sandbox-run");
    table.lines().filter(is_sandbox).map(ToOwned::to_owned).collect()
}
