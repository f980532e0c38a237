use std::io::Read;
use std::process::Stdio;

use rustix::process::Signal;

use super::{Session, end, is_there, send, wait_until_nothing_runs};
use crate::support::{family, wait_until, wait_until_gone};

const WAITS: &str = "echo started; sleep 1000 & wait";
const STUBBORN: &str = "trap '' TERM INT; echo started; while :; do sleep 1; done";

fn line(code: &str) -> Vec<&str> {
    vec!["-t", "60s", "-l", "bash", "-c", code]
}

#[test]
fn signals_end_the_program_and_the_report_is_still_printed() {
    let session = Session::new();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let (child, mut stdout) = session.start(&line(WAITS));
        let helper = session.helper();
        send(child.id(), signal);
        let answer = end(child);
        assert_eq!(answer.code, Some(130), "{signal:?}: {answer:?}");
        assert!(answer.stderr.contains("cancelled"), "{signal:?}: {answer:?}");
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        wait_until_nothing_runs(helper);
    }
    assert_eq!(session.status()[0]["executions"], 3);
}

/// What a terminal does on Ctrl-C, also to the very call that started the helper.
#[test]
fn a_signal_to_all_of_a_terminals_processes_is_not_for_the_helper() {
    use std::os::unix::process::CommandExt;
    let session = Session::new();
    let mut command = session.command();
    command.arg("--warm").args(line(WAITS)).process_group(0);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("it to run", || session.status().first().is_some_and(|one| one["running"] == 1));
    let helper = session.helper();
    let group = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process_group(group, Signal::INT).unwrap();
    assert_eq!(end(child).code, Some(130));
    wait_until_nothing_runs(helper);
    assert_eq!(session.helper(), helper);
}

#[test]
fn a_second_signal_does_not_wait() {
    let session = Session::new();
    let (child, _stdout) = session.start(&line(STUBBORN));
    let helper = session.helper();
    send(child.id(), Signal::TERM);
    send(child.id(), Signal::INT);
    assert_eq!(end(child).code, Some(130));
    wait_until_nothing_runs(helper);
}

#[test]
fn a_client_that_is_killed_takes_its_program_with_it() {
    let session = Session::new();
    let (child, _stdout) = session.start(&line(STUBBORN));
    let helper = session.helper();
    send(child.id(), Signal::KILL);
    end(child);
    wait_until_nothing_runs(helper);
    wait_until("it to count as ended", || session.status()[0]["running"] == 0);
}

#[test]
fn a_reader_that_leaves_ends_the_program_quietly() {
    let session = Session::new();
    let code = "echo started; while :; do echo more; done";
    let (child, stdout) = session.start(&line(code));
    let helper = session.helper();
    drop(stdout);
    let answer = end(child);
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(141), ""));
    wait_until_nothing_runs(helper);
}

/// The limits are the helper's to keep, whatever the client does.
#[test]
fn a_client_that_is_stopped_does_not_stop_the_clock() {
    let session = Session::new();
    let code = "print('started', flush=True)\nprint('x' * 900_000, flush=True)\nwhile True: pass";
    let (child, mut stdout) = session.start(&["-t", "3s", "-l", "python", "-c", code]);
    let helper = session.helper();
    send(child.id(), Signal::STOP);
    wait_until_nothing_runs(helper);
    send(child.id(), Signal::CONT);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.trim_end().len(), 900_000);
    assert_eq!(end(child).code, Some(124));
}

#[test]
fn a_killed_helper_is_reported_and_replaced_and_no_process_remains() {
    let session = Session::new();
    let (child, _stdout) = session.start(&line(STUBBORN));
    let helper = session.helper();
    let all = family(helper);
    send(helper, Signal::KILL);
    let answer = end(child);
    assert_eq!(answer.code, Some(125), "{answer:?}");
    assert!(
        answer.stderr.contains("the helper of --warm exited during the execution"),
        "{answer:?}"
    );
    assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
    wait_until_gone(&all);

    // Its socket is still there, and nobody answers on it.
    assert!(session.socket().exists());
    assert_eq!(session.call(&["warm", "status"]).code, Some(1));
    let next = session.warm(&["-q", "-l", "bash", "-c", "echo next"]);
    assert_eq!((next.code, next.stdout.as_str()), (Some(0), "next\n"));
    assert!(!is_there(helper) && session.helper() != helper);
}
