//! No output format passes control characters of a report on to the terminal.

use std::io::Write;

use sandbox::{Event, EventKind, Report, StreamKind};
use serde_json::{Value, json};

use super::fixtures;
use super::json::Json;
use super::ndjson::Ndjson;
use super::text::Text;
use super::{Paint, Presenter};

/// Control characters of every kind: C0, an escape sequence, DEL, and C1, where U+009B begins a sequence as ESC [ does.
const HOSTILE: &str = "x\u{0}\u{7}\r\u{8}\u{1b}]0;title\u{7}\u{7f}\u{80}\u{85}\u{9b}2J\u{9f}";

/// A report with every field set.
fn full() -> Value {
    let mut report = serde_json::to_value(fixtures::report()).unwrap();
    let skipped = json!([{"path": "skipped", "size": 1, "reason": "too large"}]);
    let more = json!({
        "status": "timeout",
        "isolation": "runc",
        "isolation_reason": "auto: something else",
        "image": "debian:12",
        "error": "the time ran out",
        "signal": "SIGSEGV",
        "output_files": [{"path": "out", "size": 1, "encoding": "utf-8", "content": "text"}],
        "skipped_files": skipped,
        "missing": ["memory"],
        "violations": [{"syscall": "ptrace", "count": 1}],
        "workspace": {
            "name": "kept", "access": "rw", "saved": false, "files": 1, "bytes": 1,
            "reason": "too much", "left_out": skipped,
        },
        "network": {
            "connections": [{
                "host": "a.example", "address": "192.0.2.1", "port": 80, "transport": "tcp",
                "decision": "refused", "reason": "not allowed", "count": 1, "bytes_in": 0, "bytes_out": 0,
            }],
            "dns": [{"name": "b.example", "kind": "A", "decision": "refused", "count": 1, "addresses": []}],
            "truncated": false,
        },
    });
    for (name, value) in more.as_object().unwrap() {
        report[name] = value.clone();
    }
    let _: Report = serde_json::from_value(report.clone()).expect("a valid report");
    report
}

/// The JSON pointers of all strings in a value.
fn texts(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(path.to_owned()),
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                texts(value, &format!("{path}/{index}"), found);
            }
        }
        Value::Object(values) => {
            for (name, value) in values {
                texts(value, &format!("{path}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// The full report with control characters in every string that accepts them, and the number of such strings.
fn hostile() -> (Report, usize) {
    let mut report = full();
    let (mut paths, mut places) = (Vec::new(), 0);
    texts(&report, "", &mut paths);
    for path in paths {
        let mut tried = report.clone();
        *tried.pointer_mut(&path).unwrap() = HOSTILE.into();
        if serde_json::from_value::<Report>(tried.clone()).is_ok() {
            (report, places) = (tried, places + 1);
        }
    }
    (serde_json::from_value(report).unwrap(), places)
}

/// Prints a note, events and the report.
fn printed(presenter: &mut dyn Presenter, report: &Report) {
    presenter.note(HOSTILE).unwrap();
    let kinds =
        [EventKind::Progress(HOSTILE.to_owned()), EventKind::Report(Box::new(report.clone()))];
    for (seq, kind) in (1..).zip(kinds) {
        presenter.event(&Event { seq, kind }).unwrap();
    }
    presenter.report(report).unwrap();
}

#[track_caller]
fn assert_harmless(printed: Vec<u8>) {
    let text = String::from_utf8(printed).unwrap();
    assert!(text.contains("title"), "the text was not printed: {text:?}");
    let control = text.chars().find(|letter| letter.is_control() && *letter != '\n');
    assert_eq!(control, None, "{text:?}");
}

#[test]
fn no_output_format_prints_control_characters_of_a_report() {
    let (report, places) = hostile();
    assert!(places >= 20, "only {places} strings accept any text");
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut text = Text::new(&mut stdout, &mut stderr, Paint::none(), false, true);
    printed(&mut text, &report);
    assert_eq!(stdout, b"");
    assert_harmless(stderr);
    for pretty in [false, true] {
        let mut stdout = Vec::new();
        printed(&mut Json::new(&mut stdout, pretty), &report);
        assert_eq!(read_back(&stdout), report.stdout);
        assert_harmless(stdout);
    }
    let mut stdout = Vec::new();
    printed(&mut Ndjson::new(&mut stdout), &report);
    assert_harmless(stdout);
}

fn read_back(json: &[u8]) -> String {
    serde_json::from_slice::<Report>(json).unwrap().stdout
}

#[test]
fn program_output_is_raw_in_text_and_escaped_in_events() {
    let kind = || EventKind::Output(StreamKind::Stdout, HOSTILE.into());
    let mut stdout = Vec::new();
    Ndjson::new(&mut stdout).event(&Event { seq: 1, kind: kind() }).unwrap();
    assert_harmless(stdout);
    let (mut stdout, stderr) = (Vec::new(), Vec::new());
    let mut text =
        Text::new(&mut stdout as &mut (dyn Write + Send), stderr, Paint::none(), true, true);
    text.event(&Event { seq: 1, kind: kind() }).unwrap();
    assert_eq!(stdout, HOSTILE.as_bytes());
}
