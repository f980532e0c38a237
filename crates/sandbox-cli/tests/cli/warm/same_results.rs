use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use super::{Session, end};
use crate::support::CommandOutput;

/// What must be equal: all but times, ids and amounts of memory, and what is told to whoever happens to be the first.
fn comparable(answer: &CommandOutput) -> (Option<i32>, String, String) {
    let without_figures = |line: &str| match line.split_once(" in ") {
        Some((status, _)) if line.starts_with(['✓', '✗']) => status.to_owned(),
        _ => line.to_owned(),
    };
    let lines = answer.stderr.lines().filter(|line| !line.ends_with("(once)"));
    let stderr: Vec<_> = lines.map(without_figures).collect();
    (answer.code, answer.stdout.clone(), stderr.join("\n"))
}

fn is_same(session: &Session, line: &[&str]) -> CommandOutput {
    let (cold, warm) = (session.call(line), session.warm(line));
    assert_eq!(comparable(&cold), comparable(&warm), "{line:?}");
    warm
}

#[test]
fn results_are_the_same_with_a_helper_and_without() {
    let session = Session::new();
    let c = "#include <stdio.h>\nint main(void) { puts(\"from c\"); return 5; }";
    for line in [
        &["-l", "python", "-c", "print('hello')"][..],
        &[
            "-l",
            "python",
            "-c",
            "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)",
        ],
        &["-l", "python", "-c", "import os; os.write(1, b'\\xff\\n'); os.write(2, b'\\xfe')"],
        &["-l", "python", "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"],
        &["-l", "bash", "-c", "echo $1 $A; pwd", "-e", "A=b=c", "--", "-x"],
        &["-l", "javascript", "-c", "console.log(6 * 7)"],
        &["-l", "c", "-c", c],
        &["-l", "c", "-c", "int main(void) { return x; }"],
        &["-l", "c", "--no-cache", "-c", c],
        &["-q", "-l", "bash", "-c", "exit 9"],
    ] {
        is_same(&session, line);
    }
}

#[test]
fn limits_are_enforced_the_same() {
    let session = Session::new();
    let eats = "b = []\nwhile True: b.append(bytearray(1 << 20))";
    let forks = "import os\ntry:\n  for i in range(50): os.fork() or os._exit(0)\n\
                 except OSError as error: print(error)";
    for (line, code) in [
        (&["-t", "300ms", "-l", "python", "-c", "while True: pass"][..], 124),
        (&["--cpu-time", "200ms", "-l", "python", "-c", "while True: pass"], 124),
        (&["-m", "64M", "-l", "python", "-c", eats], 137),
        (&["--output-limit", "1K", "-l", "python", "-c", "print('x' * 5000)"], 153),
        (&["--open-files", "9", "-l", "bash", "-c", "ulimit -n"], 0),
        (&["--pids", "5", "-l", "python", "-c", forks], 0),
        (&["--disk", "1M", "-l", "bash", "-c", "head -c 2M /dev/zero > file"], 1),
    ] {
        assert_eq!(is_same(&session, line).code, Some(code), "{line:?}");
    }
}

#[test]
fn mistakes_give_the_same_errors() {
    let session = Session::new();
    for line in [
        &["-l", "pyhton", "-c", "1"][..],
        &["-l", "python@9.9", "-c", "1"],
        &["-l", "c", "-i", "/dev/null:main.txt", "/etc/hostname"],
        &["-l", "python", "--environment", "no-such-one", "-c", "1"],
        &["-l", "python", "-v", "/no/such/place:/data", "-c", "1"],
        &["-l", "python", "--pids", "0", "-c", "1"],
        &["/no/such/file.py"],
    ] {
        let answer = is_same(&session, line);
        assert!(answer.code.is_some_and(|code| code != 0), "{line:?}: {answer:?}");
    }
}

#[test]
fn files_are_copied_and_written_the_same() {
    let session = Session::new();
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("project/lib")).unwrap();
    fs::create_dir_all(root.path().join("shared")).unwrap();
    fs::write(root.path().join("project/lib/words.py"), "WORD = 'hello'").unwrap();
    let main = "from lib.words import WORD\nimport os\nos.makedirs('deep')\n\
                open('deep/a.bin', 'wb').write(WORD.encode() + b'\\xff' + open('data', 'rb').read())\n\
                print(open('/shared/note').read(), os.listdir('.').sort())\n";
    fs::write(root.path().join("project/main.py"), main).unwrap();
    fs::write(root.path().join("data"), b"\x00\xfe").unwrap();
    fs::write(root.path().join("shared/note"), "of the host").unwrap();
    let told = [&[][..], &["--warm"]].map(|more| {
        let mut command = assert_cmd::Command::from_std(session.command());
        // Every path is seen from where the caller is.
        command.current_dir(root.path()).args(more);
        command.args(["project", "-i", "data", "-v", "shared:/shared", "-o", "results", "--json"]);
        let answer = CommandOutput::from(command.output().unwrap());
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let brought = fs::read(root.path().join("results/deep/a.bin")).unwrap();
        assert_eq!(brought, b"hello\xff\x00\xfe");
        fs::remove_dir_all(root.path().join("results")).unwrap();
        let report = answer.json();
        let names: Vec<String> = report.as_object().unwrap().keys().cloned().collect();
        let parts = ["stdout", "output_files", "enforced", "status", "version", "isolation"];
        (names, parts.map(|part| report[part].clone()))
    });
    assert_eq!(told[0], told[1]);
}

#[test]
fn templates_and_workspaces_are_the_callers_own() {
    let root = tempfile::tempdir().unwrap();
    let session = Session::new().with("SANDBOX_RUN_WORKSPACES", root.path().join("workspaces"));
    let template = root.path().join("t.py.j2");
    fs::write(&template, "def f():\n    {{ code | indent }}\nf()\n").unwrap();
    let template = template.to_str().unwrap();
    let told = [&[][..], &["--warm"]].map(|more| {
        let mut command = assert_cmd::Command::from_std(session.command());
        command.args(more).args(["-q", "--template", template]).write_stdin("x = 1\nraise E\n");
        comparable(&command.output().unwrap().into())
    });
    assert_eq!(told[0], told[1]);
    assert!(told[1].2.contains("line 2"), "{told:?}");

    let kept = session.warm(&["-q", "--workspace", "job", "-l", "bash", "-c", "echo kept > file"]);
    assert_eq!((kept.code, kept.stderr.as_str()), (Some(0), ""));
    let read = session.call(&["-q", "--workspace", "job:ro", "-l", "bash", "-c", "cat file"]);
    assert_eq!(read.stdout, "kept\n");
}

#[test]
fn events_are_numbered_lines_and_the_last_is_the_report() {
    let session = Session::new();
    let code = "import time\nfor i in range(3): print(i, flush=True); time.sleep(0.05)";
    let line = ["--format", "ndjson", "--usage-interval", "20ms", "-l", "python", "-c", code];
    let answer = session.warm(&line);
    let events: Vec<serde_json::Value> =
        answer.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    assert!(events.iter().any(|event| event["type"] == "usage"), "{answer:?}");
    let data: Vec<_> = events.iter().filter_map(|event| event["data"].as_str()).collect();
    assert_eq!(data.concat(), "0\n1\n2\n");
    assert_eq!(events.last().unwrap()["report"]["stdout"], "0\n1\n2\n");
}

#[test]
fn standard_input_is_passed_on_as_it_comes() {
    let session = Session::new();
    let code = "import sys\nfor line in sys.stdin: print('heard', line.strip(), flush=True)\nprint('over')";
    let mut command = session.command();
    command.args(["--warm", "-q", "--stdin", "-", "-l", "python", "-c", code]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut heard = || {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        line
    };
    for word in ["one", "two"] {
        writeln!(stdin, "{word}").unwrap();
        // Before there is any more of it.
        assert_eq!(heard(), format!("heard {word}\n"));
    }
    drop(stdin);
    assert_eq!(heard(), "over\n");
    assert_eq!(end(child).code, Some(0));
}

#[test]
fn much_standard_input_arrives_whole_and_none_is_waited_for_in_vain() {
    let session = Session::new();
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("input");
    let bytes: Vec<u8> = (0..=250).cycle().take(3_000_000).collect();
    fs::write(&file, &bytes).unwrap();
    let file = file.to_str().unwrap();
    let line = ["-q", "--stdin", file, "-l", "bash", "-c", "md5sum"];
    assert_eq!(is_same(&session, &line).code, Some(0));

    // A program that does not care for its input ends all the same, though the input does not.
    let mut command = session.command();
    command.args(["--warm", "-q", "--stdin", "-", "-l", "bash", "-c", "exit 7"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let _open = child.stdin.take();
    assert_eq!(end(child).code, Some(7));
}
