//! What is asked, and what the answer has to be. The number of a request decides both.

use std::time::Duration;

use serde_json::{Value, json};

use super::programs::{PROGRAMS, Program, VARIANTS, greeting};
use crate::dice::Dice;

/// Of a hundred requests, so many of each of the kinds that end badly.
const EACH_BAD_END: usize = 5;
/// Of a hundred right ones, so many that have to be compiled.
const NEW_TEXTS: usize = 1;
/// The most code that a server takes, by default.
const MAX_CODE_BYTES: usize = 1 << 20;
/// The latest moment at which an execution is cancelled. Most have begun by then.
const LATEST_CANCEL_MS: usize = 80;

/// The kinds that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The client waits for its report.
    Waited,
    /// The client is told an id, and asks for the report.
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
pub(super) struct Question {
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

impl Question {
    /// The request of this number. `nonce` makes texts that no earlier run has had compiled.
    pub(super) fn draw(number: usize, languages: &[&str], nonce: u64) -> Self {
        let mut dice = Dice::of(number);
        match dice.below(100) / EACH_BAD_END {
            0 => timeout(&mut dice),
            1 => memory(&mut dice, languages),
            2 => cancelled(&mut dice),
            3 => bad_input(&mut dice),
            _ => right(number, &mut dice, languages, nonce),
        }
    }

    fn of(kind: Kind, body: &Value, expected: Expected) -> Self {
        let body = body.to_string().into_bytes();
        Self { kind, body, expected, cancel_after: Duration::ZERO }
    }
}

fn right(number: usize, dice: &mut Dice, languages: &[&str], nonce: u64) -> Question {
    let line = format!("line {number}");
    if dice.below(8) == 0 {
        return files(&line);
    }
    let known: Vec<&Program> =
        PROGRAMS.iter().filter(|program| languages.contains(&program.language)).collect();
    let program = known[dice.below(known.len())];
    let variant = dice.below(VARIANTS);
    let remark = (dice.below(100) < NEW_TEXTS).then(|| format!("{nonce} {number}"));
    let body = json!({
        "language": program.language,
        "code": program.text(variant, remark.as_deref()),
        "stdin": format!("{line}\n"),
    });
    let kind = [Kind::Waited, Kind::Polled, Kind::Streamed][dice.below(3)];
    Question::of(kind, &body, completed(greeting(variant, &line), json!([])))
}

fn files(line: &str) -> Question {
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
    Question::of(Kind::Files, &body, completed(format!("{line}\n"), collected))
}

fn timeout(dice: &mut Dice) -> Question {
    let code = ["import time; time.sleep(60)", "while True: pass"][dice.below(2)];
    let body = json!({ "language": "python", "code": code, "timeout_ms": 200 });
    Question::of(Kind::Timeout, &body, ended("timeout"))
}

fn memory(dice: &mut Dice, languages: &[&str]) -> Question {
    let python = ("python", "b'x' * (512 << 20)");
    // The compiler must not see that nobody reads it.
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
        if languages.contains(&"c") { [python, c][dice.below(2)] } else { python };
    let body = json!({ "language": language, "code": code, "memory_limit_mb": 48 });
    Question::of(Kind::Memory, &body, ended("memory_limit"))
}

fn cancelled(dice: &mut Dice) -> Question {
    let body = json!({ "language": "python", "code": "import time; time.sleep(60)" });
    let after = u64::try_from(dice.below(LATEST_CANCEL_MS)).unwrap_or_default();
    let question = Question::of(Kind::Cancelled, &body, ended("cancelled"));
    Question { cancel_after: Duration::from_millis(after), ..question }
}

fn bad_input(dice: &mut Dice) -> Question {
    let problem = |status, code, names| Expected::Problem { status, code, names };
    match dice.below(4) {
        0 => {
            let body = json!({ "language": "python", "code": "1", "colour": "red" });
            Question::of(Kind::BadInput, &body, problem(400, "invalid_body", "colour"))
        }
        1 => {
            let body = json!({ "language": "klingon", "code": "1" });
            Question::of(Kind::BadInput, &body, problem(400, "unknown_language", "klingon"))
        }
        2 => {
            let body = json!({ "language": "python", "code": "#".repeat(MAX_CODE_BYTES + 1) });
            Question::of(Kind::BadInput, &body, problem(413, "code_too_large", "larger than"))
        }
        _ => {
            let question =
                Question::of(Kind::BadInput, &Value::Null, problem(400, "invalid_body", "line 1"));
            Question { body: b"{\"language\": \"python\", \"code".to_vec(), ..question }
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
            let one = Question::draw(number, &languages, 1);
            assert_eq!(one.body, Question::draw(number, &languages, 1).body);
            *counts.entry(one.kind).or_default() += 1;
        }
        for kind in [Kind::Timeout, Kind::Memory, Kind::Cancelled, Kind::BadInput] {
            assert!((400..600).contains(&counts[&kind]), "{counts:?}");
        }
        assert_eq!(counts.len(), 8, "{counts:?}");
    }
}
