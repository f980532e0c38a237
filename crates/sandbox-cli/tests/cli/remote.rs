//! Results are the same locally and on a server.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use tempfile::TempDir;

use crate::support::{BINARY, CommandOutput, call, call_with_long_timeout, skip, wait_until};

/// A server of its own, with nothing in it, that ends with the test.
struct Server {
    process: Child,
    url: String,
    data: TempDir,
}

impl Server {
    /// Starts the server that lies beside the command, if it was built.
    fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same with further settings.
    fn start_with(variables: &[(&str, &str)]) -> Option<Self> {
        let program = Path::new(BINARY).with_file_name("sandboxd");
        if !program.exists() {
            skip("sandboxd was not built: cargo build -p sandbox-server");
            return None;
        }
        let data = tempfile::tempdir().unwrap();
        let mut process = Command::new(program)
            .args(["--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data.path())
            .current_dir(data.path())
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (said, lines) = std::sync::mpsc::channel();
        let (stdout, stderr) = (process.stdout.take().unwrap(), process.stderr.take().unwrap());
        let other = said.clone();
        thread::spawn(move || BufReader::new(stdout).lines().try_for_each(|line| said.send(line)));
        thread::spawn(move || BufReader::new(stderr).lines().try_for_each(|line| other.send(line)));
        // Its log says where it listens, and which port it was given.
        let mut log = String::new();
        let url = loop {
            let Ok(line) = lines.recv_timeout(crate::support::TIMEOUT) else {
                panic!("the server did not start: {log}");
            };
            let line = line.unwrap();
            if let Some((_, rest)) = line.split_once("listening on http://") {
                let end = rest.find(|letter: char| !"0123456789.:".contains(letter));
                break format!("http://{}", &rest[..end.unwrap_or(rest.len())]);
            }
            log += &line;
        };
        Some(Self { process, url, data })
    }

    fn call(&self, args: &[&str]) -> CommandOutput {
        call_with_long_timeout(&[&["--server", &self.url], args].concat())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is asked to stop, so that it takes its sandboxes down.
        let process = rustix::process::Pid::from_child(&self.process);
        let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        let _ = self.process.wait();
    }
}

/// What must be equal: all but times, ids and amounts of memory.
fn comparable(answer: &CommandOutput) -> (Option<i32>, String, String) {
    let without_figures = |line: &str| match line.split_once(" in ") {
        Some((status, _)) if line.starts_with(['✓', '✗']) => status.to_owned(),
        _ => line.to_owned(),
    };
    let stderr: Vec<_> = answer.stderr.lines().map(without_figures).collect();
    (answer.code, answer.stdout.clone(), stderr.join("\n"))
}

#[test]
fn results_are_the_same_locally_and_on_a_server() {
    let Some(server) = Server::start() else { return };
    let py = |code: &'static str| vec!["-l", "python", "-c", code];
    let broken_c = vec!["-l", "c", "-c", "int main(void) { return x; }"];
    let endless = vec!["-l", "python", "-t", "300ms", "-c", "while True: pass"];
    let with_variable =
        vec!["-l", "python", "-e", "A=b", "-c", "import os; print(os.environ['A'])"];
    for line in [
        py("print('hello')"),
        py("import sys; print('out'); sys.exit(3)"),
        py("import os; os.write(1, b'\\xff\\n'); os.write(2, b'\\xfe\\n')"),
        py("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"),
        broken_c,
        endless,
        with_variable,
        vec!["-l", "pyhton", "-c", "1"],
        vec!["-l", "python", "--output-limit", "1K", "-c", "print('x' * 5000)"],
        vec!["-l", "python", "--output-limit", "1001", "-c", "print('x' * 5000)"],
        vec!["-l", "bash", "--open-files", "57", "--workdir", "sub", "-c", "ulimit -n; pwd"],
        vec!["-l", "c", "--no-cache", "--compile-memory", "600M", "-c", "int main(void) {}"],
    ] {
        let (here, there) = (call_with_long_timeout(&line), server.call(&line));
        assert_eq!(comparable(&here), comparable(&there), "{line:?}");
    }
}

#[test]
fn files_are_written_and_reports_have_the_same_fields() {
    let Some(server) = Server::start() else { return };
    let root = tempfile::tempdir().unwrap();
    let code = "open('a.txt', 'w').write('text'); open('b.bin', 'wb').write(b'\\xff')";
    let told = ["here", "there"].map(|place| {
        let directory = root.path().join(place);
        let line = ["--json", "-o", directory.to_str().unwrap(), "-l", "python", "-c", code];
        let answer = if place == "here" { call(&line) } else { server.call(&line) };
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert_eq!(fs::read(directory.join("a.txt")).unwrap(), b"text");
        assert_eq!(fs::read(directory.join("b.bin")).unwrap(), b"\xff");
        let report = answer.json();
        let names: Vec<String> = report.as_object().unwrap().keys().cloned().collect();
        (names, report["output_files"].clone(), report["enforced"].clone())
    });
    assert_eq!(told[0], told[1]);
}

#[test]
fn events_are_numbered_lines_and_the_last_is_the_report() {
    let Some(server) = Server::start() else { return };
    let answer = server.call(&["--format", "ndjson", "-l", "python", "-c", "print(1)"]);
    let events: Vec<serde_json::Value> =
        answer.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap()["report"]["stdout"], "1\n");
}

#[test]
fn standard_input_is_sent_as_it_comes_and_as_it_is() {
    let Some(server) = Server::start() else { return };
    let code =
        "import sys\nfor line in sys.stdin: print('got', line.strip(), flush=True)\nprint('end')";
    let mut child = Command::new(BINARY)
        .args(["--server", &server.url, "-q", "--stdin", "-", "-l", "python", "-c", code])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for word in ["one", "two"] {
        writeln!(stdin, "{word}").unwrap();
        // Before there is any more of it.
        assert_eq!(lines.next().unwrap().unwrap(), format!("got {word}"));
    }
    drop(stdin);
    assert_eq!(lines.next().unwrap().unwrap(), "end");
    assert!(child.wait().unwrap().success());

    // More than a request can have, and no text.
    let file = server.data.path().join("input");
    let bytes: Vec<u8> = (0..=250).cycle().take(20_000_000).collect();
    fs::write(&file, &bytes).unwrap();
    let line = ["-q", "--stdin", file.to_str().unwrap(), "-l", "bash", "-c", "md5sum"];
    let (here, there) = (call_with_long_timeout(&line), server.call(&line));
    assert_eq!(comparable(&here), comparable(&there));
    // A program that does not read it ends all the same.
    let line = ["-q", "--stdin", file.to_str().unwrap(), "-l", "bash", "-c", "exit 7"];
    assert_eq!(server.call(&line).code, Some(7));
}

#[test]
fn the_socket_of_a_server_of_ones_own_needs_no_key_and_shares_directories() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(path("shared")).unwrap();
    fs::write(path("shared/file"), "of the host").unwrap();
    let settings = [("SANDBOXD_SOCKET", &*path("s")), ("SANDBOXD_VOLUMES_FROM", &*path("shared"))];
    let Some(server) = Server::start_with(&settings) else { return };
    let volume = format!("{}:/data", path("shared"));
    let line = ["-v", &volume, "-q", "-l", "bash", "-c", "cat /data/file"];
    let socket = format!("unix:{}", path("s"));
    let answer = call_with_long_timeout(&[&["--server", &socket][..], &line].concat());
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "of the host"), "{answer:?}");
    // Whoever reaches the address of a server is not its user.
    server.call(&line).is_refused_with(&["--volume", "--server"]);
}

#[test]
fn ctrl_c_ends_the_program_on_the_server() {
    let Some(server) = Server::start() else { return };
    let code = "print('begun', flush=True)\nimport time\ntime.sleep(60)";
    let mut child = Command::new(BINARY)
        .args(["--server", &server.url, "-t", "50s", "-l", "python", "-c", code])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let mut ended = None;
    wait_until("the command to end", || {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    let answer = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!(answer.code, Some(130), "{answer:?}");
    assert!(answer.stderr.contains("cancelled"), "{answer:?}");
}

#[test]
fn the_isolation_is_the_server_s_to_permit() {
    if !rustix::process::geteuid().is_root() {
        return skip("runc needs root");
    }
    let line = ["--json", "--isolation", "runc", "-l", "python", "-c", "print(6*7)"];
    let both = [("SANDBOXD_ISOLATIONS", "native,runc")];
    let Some(server) = Server::start_with(&both) else { return };
    let report = server.call(&line).json();
    assert_eq!((&report["isolation"], &report["stdout"]), (&"runc".into(), &"42\n".into()));
    let left_open = server.call(&["--json", "-l", "python", "-c", "1"]).json();
    assert_eq!(left_open["isolation"], "native");
    assert_eq!(left_open["isolation_reason"], "auto: native is first in the order of preference");
    let Some(server) = Server::start() else { return };
    server.call(&line).is_refused_with(&["isolation", "'runc' is not permitted", "native or auto"]);
}

#[test]
fn languages_of_the_server_are_listed() {
    let Some(server) = Server::start() else { return };
    let table = server.call(&["runtimes"]);
    assert!(table.stdout.contains("LANGUAGE") && table.stdout.contains("python"), "{table:?}");
    let (here, there) =
        (call(&["runtimes", "--json"]).json(), server.call(&["runtimes", "--json"]));
    let names = |list: serde_json::Value| -> Vec<_> {
        list.as_array().unwrap().iter().map(|entry| entry["language"].clone()).collect()
    };
    assert_eq!(names(here), names(there.json()));
    server.call(&["runtimes", "--install", "go"]).is_refused_with(&["--install"]);
}

#[test]
fn mistakes_are_one_line_without_a_server() {
    let on = |url: &str, more: &[&str]| {
        call(&[&["--server", url, "-l", "python", "-c", "1"], more].concat())
    };
    on("127.0.0.1:80", &[]).is_refused_with(&["http://127.0.0.1:8080"]);
    let nobody = "http://127.0.0.1:1";
    on(nobody, &["-v", "/usr:/data"]).is_refused_with(&["--volume"]);
    on(nobody, &["--api-key", "two words"]).is_refused_with(&["--api-key: an API key is"]);
    let answer = on(nobody, &[]);
    let wanted = format!(
        "sandbox-run: connection to {nobody} failed: connection refused; is sandboxd running?\n"
    );
    assert_eq!((answer.code, answer.stderr), (Some(125), wanted));
}
