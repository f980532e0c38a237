use std::fs;
use std::thread;

use super::{A_MOMENT, BINARY, Session, copy_of_the_command, end, is_there, process, write_recipe};
use crate::support::wait_until;

const HELLO: &[&str] = &["-q", "-l", "bash", "-c", "echo hello"];

#[test]
fn many_first_calls_start_one_helper() {
    let session = Session::new();
    thread::scope(|scope| {
        let calls: Vec<_> = (0..6).map(|_| scope.spawn(|| session.warm(HELLO))).collect();
        for call in calls {
            assert_eq!(call.join().unwrap().stdout, "hello\n");
        }
    });
    // A client has its report before the helper is done with it.
    wait_until("all to have ended", || session.status().iter().all(|one| one["running"] == 0));
    let status = session.status();
    assert_eq!(status.len(), 1, "{status:?}");
    assert_eq!(status[0]["executions"], 6);
}

#[test]
fn clients_are_served_at_the_same_time() {
    let session = Session::new();
    let code = "echo started; read line; echo \"$line\"";
    let line = ["-q", "-t", "60s", "--stdin", "-", "-l", "bash", "-c", code];
    let mut children: Vec<_> = (0..2)
        .map(|_| {
            let mut command = session.command();
            command.arg("--warm").args(line);
            command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    wait_until("both to run", || {
        session.status().first().is_some_and(|status| status["running"] == 2)
    });
    // The first to come is the last to go.
    for (number, mut child) in children.drain(..).enumerate().rev() {
        use std::io::Write;
        writeln!(child.stdin.take().unwrap(), "{number}").unwrap();
        assert_eq!(end(child).stdout, format!("started\n{number}\n"));
    }
}

#[test]
fn status_tells_what_there_is_and_stop_ends_it() {
    let session = Session::new();
    let none = session.call(&["warm", "status"]);
    assert_eq!((none.code, none.stdout.contains("no helper")), (Some(1), true), "{none:?}");
    assert_eq!(session.call(&["warm", "stop"]).code, Some(0));

    session.warm(HELLO);
    let helper = session.helper();
    let status = session.call(&["warm", "status"]);
    assert_eq!(status.code, Some(0));
    for part in [format!("process {helper} "), "1 executions".to_owned(), " since 20".to_owned()] {
        assert!(status.stdout.contains(&part), "no {part:?} in {status:?}");
    }
    // It has a session of its own: no terminal can end it.
    let own = fs::read_to_string(format!("/proc/{helper}/stat")).unwrap();
    let fields: Vec<&str> = own.rsplit_once(") ").unwrap().1.split(' ').collect();
    assert_eq!(fields[3], helper.to_string(), "{own}");

    assert_eq!(session.call(&["warm", "stop"]).code, Some(0));
    wait_until("the helper to end", || !is_there(helper));
    assert_eq!(session.call(&["warm", "status"]).code, Some(1));
    assert_eq!(session.warm(HELLO).stdout, "hello\n");
    assert_ne!(session.helper(), helper);
}

#[test]
fn stop_lets_what_is_running_end() {
    let session = Session::new();
    let code = "echo started; read line; echo \"$line\"";
    let mut command = session.command();
    command.args(["--warm", "-q", "-t", "60s", "--stdin", "-", "-l", "bash", "-c", code]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    wait_until("it to run", || session.status().first().is_some_and(|one| one["running"] == 1));
    let first = session.helper();
    let stopped = session.call(&["warm", "stop"]);
    assert!(stopped.stdout.contains("1 running"), "{stopped:?}");
    // Others get a new one meanwhile.
    assert_eq!(session.warm(HELLO).stdout, "hello\n");
    assert_ne!(session.helper(), first);
    {
        use std::io::Write;
        writeln!(child.stdin.take().unwrap(), "to its end").unwrap();
    }
    let answer = end(child);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "started\nto its end\n"));
    wait_until("the first helper to end", || !is_there(first));
}

#[test]
fn a_helper_without_work_ends_by_itself() {
    let session = Session::new();
    session.warm(HELLO);
    let helper = session.helper();
    // Whoever asks last says how long.
    let mut command = session.command();
    command.env("SANDBOX_RUN_WARM_IDLE", format!("{}ms", A_MOMENT.as_millis()));
    let status = command.arg("--warm").args(HELLO).stdout(std::process::Stdio::null()).status();
    assert!(status.unwrap().success());
    wait_until("the helper to end", || !is_there(helper));
    assert!(session.status().is_empty());
    assert!(!session.place().read_dir().unwrap().any(|entry| {
        entry.unwrap().path().extension().is_some_and(|ending| ending == "socket")
    }));
    assert_eq!(session.warm(HELLO).stdout, "hello\n");

    let session = Session::new().with("SANDBOX_RUN_WARM_IDLE", "soon");
    session.warm(HELLO).is_refused_with(&["SANDBOX_RUN_WARM_IDLE", "soon", "10s"]);
}

#[test]
fn calls_between_which_helpers_end_are_all_answered() {
    let session = Session::new().with("SANDBOX_RUN_WARM_IDLE", "1ms");
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..8 {
                    let answer = session.warm(HELLO);
                    assert_eq!(answer.stdout, "hello\n", "{answer:?}");
                }
            });
        }
    });
}

#[test]
fn another_executable_replaces_the_helper() {
    let root = tempfile::tempdir().unwrap();
    let mut session = Session::new();
    session.binary = root.path().join("sandbox-run");
    copy_of_the_command(&session.binary);
    session.warm(HELLO);
    let first = session.helper();
    session.warm(HELLO);
    assert_eq!(session.helper(), first);

    let newer = root.path().join("newer");
    copy_of_the_command(&newer);
    fs::rename(&newer, &session.binary).unwrap();
    assert_eq!(session.warm(HELLO).stdout, "hello\n");
    assert_ne!(session.helper(), first);
    wait_until("the old helper to end", || !is_there(first));
}

#[test]
fn other_settings_have_a_helper_of_their_own() {
    let root = tempfile::tempdir().unwrap();
    let mut session = Session::new();
    session.warm(HELLO);
    let first = session.helper();
    session.settings.push(("SANDBOX_RUN_STORE", root.path().join("store").into()));
    session.warm(&["-l", "c", "-c", "int main(void) { return 0; }"]);
    assert!(root.path().join("store").is_dir(), "the helper has kept it elsewhere");
    session.settings.pop();
    // What belongs to the terminal makes no difference.
    session.settings.push(("SSH_TTY", "/dev/pts/99".into()));
    session.warm(HELLO);
    let status = session.status();
    assert_eq!(status.len(), 2, "{status:?}");
    let of_first = status.iter().find(|one| process(one) == first).unwrap();
    assert_eq!(of_first["executions"], 2);
}

#[test]
fn a_language_that_changes_is_not_served_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    let session = Session::new().with("XDG_CONFIG_HOME", root.path());
    let toy = ["-q", "-l", "toy", "-c", "x"];
    session.warm(HELLO);
    write_recipe(root.path(), "first");
    assert_eq!(session.warm(&toy).stdout, "first\n");
    let helper = session.helper();
    write_recipe(root.path(), "second");
    assert_eq!(session.warm(&toy).stdout, "second\n");
    assert_eq!(session.helper(), helper);
}

/// A process that stays must not keep open what belongs to its first caller.
#[test]
fn a_helper_holds_nothing_of_who_started_it() {
    let session = Session::new();
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("of-the-caller");
    let script = format!("exec 7>'{}'; \"$@\"", file.display());
    let mut command = session.command();
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", &script, "sh", BINARY, "--warm"]).args(HELLO);
    for (name, value) in command.stdin(std::process::Stdio::null()).get_envs() {
        shell.env(name, value.unwrap());
    }
    let output = shell.current_dir(root.path()).output().unwrap();
    assert_eq!(output.stdout, b"hello\n");
    let helper = session.helper();
    for entry in fs::read_dir(format!("/proc/{helper}/fd")).unwrap() {
        let held = fs::read_link(entry.unwrap().path()).unwrap_or_default();
        assert!(!held.starts_with(root.path()), "{}", held.display());
    }
    assert_eq!(fs::read_link(format!("/proc/{helper}/cwd")).unwrap(), std::path::Path::new("/"));
}
