//! Runs real programs in real sandboxes.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    BINARY, CommandOutput, call, call_with_stdin, family, wait_until, wait_until_gone,
};

const ENDLESS_C: &str = "int main(){for(;;);}";
const EATS_MEMORY: &str = "b = []\nwhile True: b.append(bytearray(1 << 20))";
const ENDLESS_OUTPUT: &str = "while True: print('y' * 1000)";

#[test]
fn python_computes_and_is_reported_as_json() {
    let answer = call(&["--lang", "python", "--code", "print(6*7)", "--json"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""));
    let report = answer.json();
    assert_eq!(report["status"], "completed");
    assert_eq!(report["stdout"], "42\n");
    assert_eq!(report["exit_code"], 0);
    assert_eq!(report["isolation"], "native");
    assert!(report["execution_time_ms"].as_f64().unwrap() > 0.0, "{report}");
    assert!(report["memory_used_kb"].as_u64().unwrap() > 0, "{report}");
    let enforced: Vec<_> = report["enforced"].as_array().unwrap().iter().collect();
    for protection in ["user-namespace", "pid-namespace", "seccomp"] {
        assert!(enforced.iter().any(|name| *name == protection), "no {protection}: {report}");
    }
}

#[test]
fn containers_report_the_same() {
    let by = |isolation: &str| {
        let code = "import sys\nprint(6*7)\nprint('no', file=sys.stderr)\nopen('f', 'w').write('x')\nsys.exit(3)";
        let answer = call(&[
            "--isolation",
            isolation,
            "-l",
            "python",
            "-c",
            code,
            "--json",
            "--collect",
            "*",
        ]);
        assert_eq!(answer.code, Some(3), "{answer:?}");
        answer.json()
    };
    let native = by("native");
    for isolation in ["runc", "gvisor"] {
        let contained = by(isolation);
        assert_eq!(contained["isolation"], isolation);
        for part in ["status", "stage", "exit_code", "stdout", "stderr", "output_files", "version"]
        {
            assert_eq!(native[part], contained[part], "{part} of {isolation}");
        }
        // In gVisor nobody knows which of the two streams was written to first.
        assert!(isolation == "gvisor" || native["output"] == contained["output"], "{contained}");
    }
}

/// Runs hello behind `--isolation runc` with other programs in the places of some.
fn hello_by_runc(instead: &[(&str, &str)], args: &[&str]) -> CommandOutput {
    let mounts = instead.iter().map(|(place, other)| format!("mount --bind {other} {place} && "));
    let script =
        mounts.collect::<String>() + "exec \"$0\" \"$@\" --isolation runc -l bash -c 'echo hi'";
    let mut command = assert_cmd::Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script, BINARY]).args(args);
    command.output().unwrap().into()
}

#[test]
fn crun_is_used_where_there_is_no_runc_and_where_somebody_says_so() {
    let (no_runc, no_crun) = (("/usr/sbin/runc", "/dev/null"), ("/usr/bin/crun", "/dev/null"));
    for (instead, args) in [
        (&[no_runc][..], &[][..]),
        (&[no_crun], &[]),
        (&[no_runc], &["--oci-runtime", "crun"]),
        (&[no_runc], &["--oci-runtime", "/usr/bin/crun"]),
        (&[no_crun], &["--oci-runtime", "runc"]),
    ] {
        let answer = hello_by_runc(instead, args);
        assert_eq!((answer.code, &*answer.stdout), (Some(0), "hi\n"), "{args:?}: {answer:?}");
    }
    for (instead, args, words) in [
        (&[no_runc, no_crun][..], &[][..], "apt-get install runc"),
        (&[no_crun], &["--oci-runtime", "crun"], "apt-get install crun"),
        (&[], &["--oci-runtime", "/bin/true"], "/bin/true does not work, is not runc or crun"),
        (&[], &["--oci-runtime", "youki"], "runc, crun or the path"),
    ] {
        hello_by_runc(instead, args).is_refused_with(&[words]);
    }
}

#[test]
fn a_missing_or_wrong_oci_runtime_is_one_line() {
    let script =
        "mount --bind \"$1\" /usr/bin/runsc && exec \"$0\" --isolation gvisor -l python -c 1";
    for (instead, words) in
        [("/dev/null", "runsc is not installed"), ("/bin/true", "another program")]
    {
        let mut command = assert_cmd::Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, BINARY, instead]);
        let answer = CommandOutput::from(command.output().unwrap());
        assert_eq!(answer.code, Some(2), "{answer:?}");
        for part in [words, "install it", "apt-get install runsc", "--isolation native"] {
            assert!(answer.stderr.contains(part), "no '{part}': {answer:?}");
        }
        assert_eq!(answer.stderr.trim_end().lines().count(), 1, "{answer:?}");
    }
}

#[test]
fn an_endless_loop_in_c_runs_out_of_time_on_time() {
    let answer = call_with_stdin(&["--lang", "c", "--timeout", "1s", "--json"], ENDLESS_C);
    assert_eq!(answer.code, Some(124), "{answer:?}");
    let report = answer.json();
    assert_eq!((&report["status"], &report["stage"]), (&"timeout".into(), &"run".into()));
    let ran = report["execution_time_ms"].as_f64().unwrap();
    // Not the ten seconds that it would have had.
    assert!((1000.0..10_000.0).contains(&ran), "{report}");
}

#[test]
fn an_allocation_loop_runs_out_of_memory() {
    let args = ["-l", "python", "-c", EATS_MEMORY, "-m", "64M", "--json"];
    let answer = call(&args);
    assert_eq!(answer.code, Some(137), "{answer:?}");
    assert_eq!(answer.json()["status"], "memory_limit");
}

#[test]
fn endless_output_is_cut_and_its_beginning_kept() {
    let args = ["-l", "python", "-c", ENDLESS_OUTPUT, "--output-limit", "8K", "--json"];
    let answer = call(&args);
    assert_eq!(answer.code, Some(153), "{answer:?}");
    let report = answer.json();
    assert_eq!(report["status"], "output_limit");
    assert_eq!(report["stdout_truncated"], true);
    let stdout = report["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("yyy"), "{report}");
    assert!(stdout.len() <= 8192, "{} bytes", stdout.len());
}

#[test]
fn the_programs_exit_code_is_passed_on() {
    let answer = call(&["-l", "bash", "-c", "exit 3", "--json"]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    let report = answer.json();
    assert_eq!((&report["status"], &report["exit_code"]), (&"runtime_error".into(), &3.into()));
}

#[test]
fn death_by_signal_gives_the_exit_code_of_a_shell() {
    let answer = call(&["-l", "bash", "-c", "kill -SEGV $$", "--json"]);
    assert_eq!(answer.code, Some(128 + 11), "{answer:?}");
    assert_eq!(answer.json()["signal"], "SIGSEGV");
}

#[test]
fn a_compile_error_shows_the_compilers_output() {
    let answer = call_with_stdin(&["--lang", "c", "--json"], "int main( { return 0; }");
    assert_eq!(answer.code, Some(65), "{answer:?}");
    let report = answer.json();
    assert_eq!(report["status"], "compile_error");
    assert!(report["stderr"].as_str().unwrap().contains("error"), "{report}");

    let answer = call_with_stdin(&["--lang", "c"], "int main( { return 0; }");
    assert!(answer.stderr.contains("error") && answer.stderr.contains("✗ compile error"));
}

#[test]
fn text_goes_to_its_own_streams_and_a_summary_follows() {
    let code = "echo out; echo err >&2; exit 4";
    let answer = call(&["-l", "bash", "-c", code]);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(4), "out\n"));
    let summary = answer.stderr.strip_prefix("err\n").unwrap();
    assert!(summary.starts_with("✗ exit code 4 in "), "{summary}");
    assert!(!summary.contains('\u{1b}'), "colours in a pipe: {summary:?}");

    let answer = call(&["-q", "-l", "bash", "-c", code]);
    assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("out\n", "err\n"));
}

#[test]
fn every_byte_of_the_output_arrives() {
    let code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)";
    let mut command = assert_cmd::Command::new(BINARY);
    let output = command.args(["-q", "-l", "python", "-c", code]).output().unwrap();
    let wanted: Vec<u8> = (0..=255).cycle().take(256_000).collect();
    assert!(output.stdout == wanted, "{} bytes differ", output.stdout.len());
}

#[test]
fn events_are_lines_in_order_with_the_report_last() {
    let code = "import time\nfor i in range(3): print(i, flush=True); time.sleep(0.05)";
    let args = ["-l", "python", "-c", code, "--format", "ndjson", "--usage-interval", "20ms"];
    let answer = call(&args);
    let events: Vec<serde_json::Value> =
        answer.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seqs: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    let wanted: Vec<_> = (1..=events.len() as u64).collect();
    assert_eq!(seqs, wanted);
    let of_type = |name: &str| events.iter().filter(|event| event["type"] == name).count();
    assert_eq!(events.last().unwrap()["type"], "report");
    assert_eq!(of_type("report"), 1);
    assert!(of_type("usage") > 0, "{answer:?}");
    let data: Vec<_> = events.iter().filter_map(|event| event["data"].as_str()).collect();
    assert_eq!(data.concat(), "0\n1\n2\n");
}

#[test]
fn arguments_variables_and_standard_input_reach_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("input.txt");
    fs::write(&input, "from a file\n").unwrap();
    let code = "echo \"$1|$GREETING\"; cat";
    let common = ["-q", "-l", "bash", "-c", code, "-e", "GREETING=hi"];
    let with = |stdin: &str, text: &str| {
        let args = [&common[..], &["--stdin", stdin, "--", "-one"]].concat();
        call_with_stdin(&args, text)
    };
    assert_eq!(with(input.to_str().unwrap(), "").stdout, "-one|hi\nfrom a file\n");
    assert_eq!(with("-", "from here\n").stdout, "-one|hi\nfrom here\n");
}

#[test]
fn files_keep_their_paths_and_results_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("project/lib")).unwrap();
    fs::write(at("project/lib/words.py"), "WORD = 'hello'").unwrap();
    let main = "from lib.words import WORD\nimport os\nos.makedirs('out/deep')\n\
                open('out/deep/a.txt', 'w').write(WORD + open('data.txt').read())\n";
    fs::write(at("project/main.py"), main).unwrap();
    fs::write(at("numbers"), "123").unwrap();
    let (project, results) = (at("project"), at("results"));
    let input = format!("{}:data.txt", at("numbers").display());
    let args = [
        project.to_str().unwrap(),
        "--input",
        &input,
        "--output-dir",
        results.to_str().unwrap(),
        "--collect",
        "out/**",
    ];
    let answer = call(&args);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(fs::read_to_string(results.join("out/deep/a.txt")).unwrap(), "hello123");
    assert!(answer.stderr.contains("out/deep/a.txt (8 B)"), "{answer:?}");
}

#[test]
fn a_template_is_filled_in_and_run() {
    let directory = tempfile::tempdir().unwrap();
    let template = directory.path().join("t.py.j2");
    fs::write(&template, "{{ code }}\nprint(twice({{ number }}))").unwrap();
    let template = template.to_str().unwrap();
    let args = ["-q", "--template", template, "--set", "number=21"];
    let answer = call_with_stdin(&args, "def twice(x): return 2 * x");
    assert_eq!(answer.stdout, "42\n", "{answer:?}");
}

#[test]
fn an_ordinary_user_can_run_code_too() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("sandbox-run");
    fs::copy(BINARY, &copy).unwrap();
    for path in [directory.path(), copy.as_path()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let code = "print(6*7)";
    let run = ["--lang", "python", "--code", code, "--json"];
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = assert_cmd::Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(&copy);
        command
    } else {
        assert_cmd::Command::new(&copy)
    };
    let output = command.args(run).current_dir("/").output().unwrap();
    let answer = CommandOutput::from(output);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.json()["stdout"], "42\n");
}

/// Root of a namespace is not root of the host: in a container started without root it has one id to
/// give, like an ordinary user.
#[test]
fn root_of_a_user_namespace_can_run_code_too() {
    let mut command = assert_cmd::Command::new("unshare");
    command.args(["--user", "--map-root-user", BINARY]);
    command.args(["--lang", "python", "--code", "print(6*7)", "--json"]);
    let answer = CommandOutput::from(command.output().unwrap());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(answer.json()["stdout"], "42\n");
}

#[test]
fn a_host_without_user_namespaces_gets_a_hint() {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$0\" -l python -c 1";
    let mut command = assert_cmd::Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", script, BINARY]);
    let answer = CommandOutput::from(command.output().unwrap());
    assert_eq!(answer.code, Some(125), "{answer:?}");
    assert!(answer.stderr.contains("user.max_user_namespaces"), "{answer:?}");
    assert_eq!(answer.stderr.trim_end().lines().count(), 1, "{answer:?}");
}

/// Starts the command and waits for the program's first line.
fn start(args: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = Command::new(BINARY)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.contains("started"), "{line:?}");
    (child, stdout)
}

fn send(child: &Child, signal: Signal) {
    let process = Pid::from_child(child);
    kill_process(process, signal).unwrap();
}

fn end(child: &mut Child) -> ExitStatus {
    let mut status = None;
    wait_until("the command to end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

#[test]
fn signals_end_the_program_and_the_report_is_still_printed() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let code = "echo started; sleep 1000 & wait";
        let (mut child, mut stdout) = start(&["-t", "60s", "-l", "bash", "-c", code]);
        let family = family(child.id());
        send(&child, signal);
        assert_eq!(end(&mut child).code(), Some(130), "{signal:?}");
        let (mut rest, mut stderr) = (String::new(), String::new());
        stdout.read_to_string(&mut rest).unwrap();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(rest, "");
        assert!(stderr.contains("cancelled"), "{signal:?}: {stderr}");
        wait_until_gone(&family);
    }
}

#[test]
fn a_program_that_ignores_signals_is_killed_and_a_second_signal_does_not_wait() {
    let code = "trap '' TERM INT; echo started; while :; do sleep 1; done";
    let (mut child, _stdout) = start(&["-t", "60s", "-l", "bash", "-c", code]);
    let family_of_first = family(child.id());
    send(&child, Signal::TERM);
    assert_eq!(end(&mut child).code(), Some(130));
    wait_until_gone(&family_of_first);

    let (mut child, _stdout) = start(&["-t", "60s", "-l", "bash", "-c", code]);
    let family_of_second = family(child.id());
    send(&child, Signal::TERM);
    send(&child, Signal::INT);
    let status = end(&mut child);
    assert_eq!((status.code(), status.signal()), (Some(130), None));
    wait_until_gone(&family_of_second);
}

#[test]
fn a_closed_pipe_ends_the_program_without_a_message() {
    let code = "print('started', flush=True)\nwhile True: print('more', flush=True)";
    let (mut child, stdout) = start(&["-t", "60s", "-l", "python", "-c", code]);
    let family = family(child.id());
    drop(stdout);
    assert_eq!(end(&mut child).code(), Some(141));
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(stderr, "");
    wait_until_gone(&family);
}

#[test]
fn a_reader_that_does_not_read_does_not_stop_the_clock() {
    // More than a pipe holds, so that printing it waits for a reader who never comes.
    let code = "print('started', flush=True)\nprint('x' * 500_000, flush=True)\nwhile True: pass";
    let args = ["-t", "3s", "-l", "python", "-c", code];
    let (mut child, mut stdout) = start(&args);
    let before = family(child.id());
    wait_until("the program to be ended", || {
        before.iter().any(|process| !fs::exists(format!("/proc/{process}")).unwrap())
    });
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.trim_end().len(), 500_000);
    assert_eq!(end(&mut child).code(), Some(124));
}

#[test]
fn a_full_disk_behind_standard_output_is_an_internal_error() {
    let status = Command::new(BINARY)
        .args(["-l", "bash", "-c", "echo lost"])
        .stdin(Stdio::null())
        .stdout(File::options().write(true).open("/dev/full").unwrap())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(125));
}

#[test]
fn doctor_lists_every_protection() {
    let answer = call(&["doctor", "--json"]);
    let findings = answer.json();
    let protections = findings["protections"].as_array().unwrap();
    assert_eq!(protections.len(), sandbox::Protection::ALL.len());
    for entry in protections {
        let explained = entry["reason"].is_string() && entry["remedy"].is_string();
        assert!(entry["enforceable"] == true || explained, "{entry}");
    }
    let expected = i32::from(findings["ok"] != true);
    assert_eq!(answer.code, Some(expected), "{findings}");
    let list = call(&["doctor"]);
    assert_eq!(list.code, Some(expected));
    assert!(list.stdout.contains("seccomp") && list.stdout.contains("kernel"), "{list:?}");
}
