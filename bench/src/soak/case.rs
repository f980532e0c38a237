//! The cases of the soak: a request with its expected response. The number of a case decides both, so every run sends the same.

use std::time::Duration;

use serde_json::{Value, json};

use super::programs::{PROGRAMS, Program, VARIANTS, greeting};
use crate::rng::Rng;

/// Percentage of each kind of unsuccessful request.
const EACH_BAD_END: usize = 5;
/// Percentage of the successful requests that are not in the compile cache.
const NEW_TEXTS: usize = 1;
/// The most code that a server takes, by default.
const MAX_CODE_BYTES: usize = 1 << 20;
/// The latest moment at which an execution is cancelled. Most have begun by then.
const LATEST_CANCEL_MS: usize = 80;

/// The kinds that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The client waits for the report.
    Waited,
    /// The client gets an id and polls for the report.
    Polled,
    /// The client reads events.
    Streamed,
    /// Files go in and come back.
    Files,
    Timeout,
    Memory,
    Cancelled,
    BadInput,
}

/// One request.
pub(super) struct Case {
    pub(super) kind: Kind,
    pub(super) body: Vec<u8>,
    pub(super) expected: Expected,
    /// When to cancel it, after it was accepted.
    pub(super) cancel_after: Duration,
}

/// What the answer has to be.
pub(super) enum Expected {
    /// A report with this status and exit code that printed exactly this, and these files.
    Report { status: &'static str, exit_code: i64, stdout: String, files: Value },
    /// A problem with this status and code, whose words name this.
    Problem { status: u16, code: &'static str, names: &'static str },
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Waited => "right, waited for",
            Self::Polled => "right, asked for later",
            Self::Streamed => "right, read as events",
            Self::Files => "right, files in and out",
            Self::Timeout => "out of time",
            Self::Memory => "out of memory",
            Self::Cancelled => "cancelled",
            Self::BadInput => "bad input",
        }
    }
}

impl Case {
    /// The request of this number. `nonce` makes texts that no earlier run has had compiled.
    pub(super) fn draw(number: usize, languages: &[&str], nonce: u64) -> Self {
        let mut rng = Rng::seeded(number);
        match rng.below(100) / EACH_BAD_END {
            0 => timeout(&mut rng),
            1 => memory(&mut rng, languages),
            2 => cancelled(&mut rng),
            3 => bad_input(&mut rng),
            _ => right(number, &mut rng, languages, nonce),
        }
    }

    fn of(kind: Kind, body: &Value, expected: Expected) -> Self {
        let body = body.to_string().into_bytes();
        Self { kind, body, expected, cancel_after: Duration::ZERO }
    }
}

fn right(number: usize, rng: &mut Rng, languages: &[&str], nonce: u64) -> Case {
    let line = format!("line {number}");
    if rng.below(8) == 0 {
        return files(&line);
    }
    let known: Vec<&Program> =
        PROGRAMS.iter().filter(|program| languages.contains(&program.language)).collect();
    let program = known[rng.below(known.len())];
    let variant = rng.below(VARIANTS);
    let remark = (rng.below(100) < NEW_TEXTS).then(|| format!("{nonce} {number}"));
    let body = json!({
        "language": program.language,
        "code": program.text(variant, remark.as_deref()),
        "stdin": format!("{line}\n"),
    });
    let kind = [Kind::Waited, Kind::Polled, Kind::Streamed][rng.below(3)];
    Case::of(kind, &body, completed(greeting(variant, &line), json!([])))
}

fn files(line: &str) -> Case {
    let body = json!({
        "language": "python",
        "code": "text = open('in.txt').read()\nopen('out.txt', 'w').write(text.upper())\nprint(text)",
        "files": [{ "path": "in.txt", "content": line }],
        "collect": ["*.txt"],
    });
    let upper = line.to_uppercase();
    // What came in and is as it was does not come back.
    let collected = json!([
        { "path": "out.txt", "size": upper.len(), "encoding": "utf-8", "content": upper },
    ]);
    Case::of(Kind::Files, &body, completed(format!("{line}\n"), collected))
}

fn timeout(rng: &mut Rng) -> Case {
    let code = ["import time; time.sleep(60)", "while True: pass"][rng.below(2)];
    let body = json!({ "language": "python", "code": code, "timeout_ms": 200 });
    Case::of(Kind::Timeout, &body, ended("timeout"))
}

fn memory(rng: &mut Rng, languages: &[&str]) -> Case {
    let python = ("python", "b'x' * (512 << 20)");
    // Volatile, so that the compiler keeps the unused writes.
    let c = (
        "c",
        "#include <stdlib.h>\n\
         int main(void) {\n\
         volatile char *all = malloc(512 << 20);\n\
         for (size_t at = 0; at < 512 << 20; at += 1024) all[at] = 1;\n\
         return 0;\n\
         }\n",
    );
    let (language, code) =
        if languages.contains(&"c") { [python, c][rng.below(2)] } else { python };
    let body = json!({ "language": language, "code": code, "memory_limit_mb": 48 });
    Case::of(Kind::Memory, &body, ended("memory_limit"))
}

fn cancelled(rng: &mut Rng) -> Case {
    let body = json!({ "language": "python", "code": "import time; time.sleep(60)" });
    let after = u64::try_from(rng.below(LATEST_CANCEL_MS)).unwrap_or_default();
    let case = Case::of(Kind::Cancelled, &body, ended("cancelled"));
    Case { cancel_after: Duration::from_millis(after), ..case }
}

fn bad_input(rng: &mut Rng) -> Case {
    let problem = |status, code, names| Expected::Problem { status, code, names };
    match rng.below(4) {
        0 => {
            let body = json!({ "language": "python", "code": "1", "colour": "red" });
            Case::of(Kind::BadInput, &body, problem(400, "invalid_body", "colour"))
        }
        1 => {
            let body = json!({ "language": "klingon", "code": "1" });
            Case::of(Kind::BadInput, &body, problem(400, "unknown_language", "klingon"))
        }
        2 => {
            let body = json!({ "language": "python", "code": "#".repeat(MAX_CODE_BYTES + 1) });
            Case::of(Kind::BadInput, &body, problem(413, "code_too_large", "larger than"))
        }
        _ => {
            let case =
                Case::of(Kind::BadInput, &Value::Null, problem(400, "invalid_body", "line 1"));
            Case { body: b"{\"language\": \"python\", \"code".to_vec(), ..case }
        }
    }
}

fn completed(stdout: String, files: Value) -> Expected {
    Expected::Report { status: "completed", exit_code: 0, stdout, files }
}

fn ended(status: &'static str) -> Expected {
    Expected::Report { status, exit_code: -1, stdout: String::new(), files: json!([]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_number_always_asks_the_same_and_every_kind_has_its_part() {
        let languages: Vec<_> = PROGRAMS.iter().map(|program| program.language).collect();
        let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
        for number in 0..10_000 {
            let one = Case::draw(number, &languages, 1);
            assert_eq!(one.body, Case::draw(number, &languages, 1).body);
            *counts.entry(one.kind).or_default() += 1;
        }
        for kind in [Kind::Timeout, Kind::Memory, Kind::Cancelled, Kind::BadInput] {
            assert!((400..600).contains(&counts[&kind]), "{counts:?}");
        }
        assert_eq!(counts.len(), 8, "{counts:?}");
    }
}
