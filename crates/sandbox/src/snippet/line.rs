//! One line of a message, and its references to source lines.

use sandbox_core::{LineOrigin, RelativePath, Snippet, Stage};

/// How a line number, and optionally a column, follows the name of a file. A digit follows each text.
struct Form {
    line: &'static str,
    column: Option<&'static str>,
}

#[rustfmt::skip]
const FORMS: &[Form] = &[
    // gcc, clang, go, rustc, javac, node, ruby, lua, ghc: `main.c:12:5`, `(Main.java:12)`, `main.rb:12:in`
    Form { line: ":", column: Some(":") },
    // tsc, csc: `main.ts(12,5)`
    Form { line: "(", column: Some(",") },
    // python: `File "main.py", line 12`
    Form { line: "\", line ", column: None },
    // bash: `main.sh: line 12`
    Form { line: ": line ", column: None },
    // perl: `at main.pl line 12.`
    Form { line: " line ", column: None },
    // php: `in main.php on line 12`
    Form { line: " on line ", column: None },
];

/// Prefixes with which a path is still the entry file.
const PREFIXES: &[&str] = &["file://", "/work/", "command-line-arguments/", "./", "../"];
/// Maximum length of all prefixes together; longer than in any real message.
const MAX_PREFIX: usize = 64;
/// Characters that precede a path, besides white space.
const BOUNDARIES: &[u8] = b"\"'`([{<>=,;|";

/// Names in place of the file name: for a line of the template itself, and for a line that the template generated, which is
/// numbered in the program.
const TEMPLATE: &str = "template";
const FILLED_TEMPLATE: &str = "filled-template";

/// Rewrites the lines of one stream, in order.
pub(super) struct Rewriter<'a> {
    entry: &'a str,
    file_name: &'a str,
    snippet: &'a Snippet,
    stage: Stage,
    /// Whether a compiler is printing lines of the entry file with their numbers in a margin.
    is_showing: bool,
}

/// A reference in a message, as byte ranges of the line.
struct Mention {
    /// Start and end of the path.
    path: (usize, usize),
    /// Start and end of the line number, and its value.
    line: (usize, usize, usize),
    column: Option<(usize, usize, usize)>,
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(entry: &'a RelativePath, snippet: &'a Snippet, stage: Stage) -> Self {
        let entry = entry.as_str();
        let file_name = entry.rsplit('/').next().unwrap_or(entry);
        Self { entry, file_name, snippet, stage, is_showing: false }
    }

    /// Appends the rewritten line to `result`. A line without a reference to the entry file is copied unchanged.
    pub(super) fn rewrite(&mut self, line: &[u8], result: &mut Vec<u8>) {
        if self.stage == Stage::Compile
            && let Some((start, end, number)) = margin(line)
        {
            let told = if self.is_showing { self.in_margin(start, end, number) } else { None };
            match told {
                Some(told) => {
                    result.extend_from_slice(told.as_bytes());
                    result.extend_from_slice(&line[end..]);
                }
                None => result.extend_from_slice(line),
            }
            return;
        }
        let mut done = 0;
        while let Some(mention) = self.next_mention(line, done) {
            result.extend_from_slice(&line[done..mention.path.0]);
            done = self.tell(line, &mention, result);
            self.is_showing = true;
        }
        if done == 0 && names_a_place(line) {
            self.is_showing = false;
        }
        result.extend_from_slice(&line[done..]);
    }

    /// Rewrites a reference; returns where it ended.
    fn tell(&self, line: &[u8], mention: &Mention, result: &mut Vec<u8>) -> usize {
        let (path, number) = (mention.path, mention.line);
        let (name, told, indent) = match self.snippet.origin(number.2) {
            LineOrigin::Code { line: told, indent } => (&line[path.0..path.1], told, indent),
            LineOrigin::Template(told) => (TEMPLATE.as_bytes(), told, 0),
            LineOrigin::Generated(told) => (FILLED_TEMPLATE.as_bytes(), told, 0),
        };
        result.extend_from_slice(name);
        result.extend_from_slice(&line[path.1..number.0]);
        result.extend_from_slice(told.to_string().as_bytes());
        let Some(column) = mention.column else {
            return number.1;
        };
        result.extend_from_slice(&line[number.1..column.0]);
        let told = column.2.saturating_sub(indent).max(1);
        result.extend_from_slice(told.to_string().as_bytes());
        column.1
    }

    fn next_mention(&self, line: &[u8], from: usize) -> Option<Mention> {
        let mut at = from;
        while let Some(found) = find(&line[at..], self.file_name.as_bytes()) {
            let end = at + found + self.file_name.len();
            if let Some(start) = self.path_start(line, from, end)
                && let Some(mention) = mention(line, (start, end))
            {
                return Some(mention);
            }
            at = end;
        }
        None
    }

    /// The start of the path that ends here, if it is the entry file: with its path in the work directory, or with its name
    /// only, as in Java stack traces.
    fn path_start(&self, line: &[u8], from: usize, end: usize) -> Option<usize> {
        let is_boundary = |byte: &u8| byte.is_ascii_whitespace() || BOUNDARIES.contains(byte);
        // Looked for no further than a path can reach: a program chooses what its lines look like, and
        // must not make them slow to read.
        let from = from.max(end.saturating_sub(self.entry.len() + MAX_PREFIX));
        let start = line[from..end].iter().rposition(is_boundary).map_or(from, |at| from + at + 1);
        let mut path = std::str::from_utf8(&line[start..end]).ok()?;
        for prefix in PREFIXES {
            while let Some(rest) = path.strip_prefix(prefix) {
                path = rest;
            }
        }
        (path == self.entry || path == self.file_name).then_some(start)
    }

    /// A number in the margin, in as many columns as before.
    fn in_margin(&self, start: usize, end: usize, number: usize) -> Option<String> {
        let told = match self.snippet.origin(number) {
            LineOrigin::Code { line, .. } | LineOrigin::Template(line) => line,
            LineOrigin::Generated(_) => return None,
        };
        // rustc writes the numbers to the left, gcc to the right.
        Some(if start == 0 { format!("{told:<end$}") } else { format!("{told:>end$}") })
    }
}

/// Reads a line's number behind a path.
fn mention(line: &[u8], path: (usize, usize)) -> Option<Mention> {
    FORMS.iter().find_map(|form| {
        let number = number_behind(line, path.1, form.line)?;
        let column = form.column.and_then(|text| number_behind(line, number.1, text));
        Some(Mention { path, line: number, column })
    })
}

fn number_behind(line: &[u8], at: usize, text: &str) -> Option<(usize, usize, usize)> {
    line[at..].starts_with(text.as_bytes()).then_some(())?;
    let start = at + text.len();
    let length = line[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = std::str::from_utf8(&line[start..start + length]).ok()?;
    Some((start, start + length, digits.parse().ok()?))
}

/// The number in the margin of a line of source that a compiler shows: `   12 | int x;`, `12 + use x;`.
fn margin(line: &[u8]) -> Option<(usize, usize, usize)> {
    let start = line.iter().take_while(|byte| **byte == b' ').count();
    let number = number_behind(line, start, "")?;
    let behind = line[number.1..].trim_ascii_start();
    let is_margin = line.get(number.1) == Some(&b' ')
        && behind.first().is_some_and(|byte| b"|+-~".contains(byte));
    is_margin.then_some(number)
}

/// Whether the line contains a reference to some file.
fn names_a_place(line: &[u8]) -> bool {
    line.windows(3).any(|bytes| {
        !bytes[0].is_ascii_whitespace() && bytes[1] == b':' && bytes[2].is_ascii_digit()
    })
}

fn find(line: &[u8], name: &[u8]) -> Option<usize> {
    line.windows(name.len()).position(|window| window == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines 4 to 8 are the code, moved by four columns; the template has as many lines before it.
    fn snippet() -> Snippet {
        Snippet {
            lines: 4..=8,
            first: 1,
            first_indent: 4,
            indent: 4,
            head: 3,
            tail: 10,
            tail_in_template: 6,
        }
    }

    fn rewritten(entry: &str, stage: Stage, lines: &[&str]) -> Vec<String> {
        let (entry, snippet) = (entry.parse().unwrap(), snippet());
        let mut rewriter = Rewriter::new(&entry, &snippet, stage);
        let one = |line: &&str| {
            let mut result = Vec::new();
            rewriter.rewrite(line.as_bytes(), &mut result);
            String::from_utf8(result).unwrap()
        };
        lines.iter().map(one).collect()
    }

    #[test]
    fn every_form_is_told_in_lines_of_the_code() {
        #[rustfmt::skip]
        let table = [
            ("main.c", "main.c:5:9: error: x", "main.c:2:5: error: x"),
            ("main.c", "In file included from main.c:4:", "In file included from main.c:1:"),
            ("main.go", "./main.go:5:6: undefined: x", "./main.go:2:2: undefined: x"),
            ("main.go", "\t/work/main.go:5 +0x1d", "\t/work/main.go:2 +0x1d"),
            ("Main.java", "Main.java:5: error: ';' expected", "Main.java:2: error: ';' expected"),
            ("src/Main.java", "\tat Main.f(Main.java:5)", "\tat Main.f(Main.java:2)"),
            ("main.py", "  File \"/work/main.py\", line 5, in f", "  File \"/work/main.py\", line 2, in f"),
            ("main.rs", " --> main.rs:5:9", " --> main.rs:2:5"),
            ("main.rs", "panicked at main.rs:5:9:", "panicked at main.rs:2:5:"),
            ("main.ts", "main.ts(5,9): error TS2304", "main.ts(2,5): error TS2304"),
            ("main.js", "/work/main.js:5", "/work/main.js:2"),
            ("main.mjs", "at f (file:///work/main.mjs:5:13)", "at f (file:///work/main.mjs:2:9)"),
            ("main.rb", "main.rb:5:in `f': x", "main.rb:2:in `f': x"),
            ("main.sh", "main.sh: line 5: x: not found", "main.sh: line 2: x: not found"),
            ("main.pl", "x at main.pl line 5.", "x at main.pl line 2."),
            ("main.php", "thrown in /work/main.php on line 5", "thrown in /work/main.php on line 2"),
            ("a/b.py", "../a/b.py:5 and a/b.py:8", "../a/b.py:2 and a/b.py:5"),
            // A column within the added indent has no column in the user's code.
            ("main.c", "main.c:5:2: x", "main.c:2:1: x"),
        ];
        for (entry, line, told) in table {
            assert_eq!(rewritten(entry, Stage::Run, &[line]), [told]);
        }
    }

    #[test]
    fn lines_of_the_template_are_told_as_its_own() {
        #[rustfmt::skip]
        let table = [
            ("main.c:3:5: error", "template:3:5: error"),
            ("./main.c:9: error", "filled-template:9: error"),
            ("  File \"/work/main.c\", line 12, in f", "  File \"template\", line 8, in f"),
        ];
        for (line, told) in table {
            assert_eq!(rewritten("main.c", Stage::Run, &[line]), [told]);
        }
    }

    #[test]
    fn what_is_about_something_else_stays_as_it_is() {
        for line in [
            "domain.c:5:1: x",
            "main.cc:5:1: x",
            "lib/main.c:5:1: x",
            "/usr/include/main.c:5:1",
            "main.c: 5",
            "main.c:five",
            "main.c:99999999999999999999999999: x",
            "main.c",
            "",
            "   5 | int x;",
        ] {
            assert_eq!(rewritten("main.c", Stage::Run, &[line]), [line]);
        }
    }

    #[test]
    fn numbers_in_the_margin_follow_the_message_they_belong_to() {
        let shown =
            ["main.c:5:9: x", "    5 |     int x", "      |     ^", "   12 | }", "    9 | ?"];
        let told =
            ["main.c:2:5: x", "    2 |     int x", "      |     ^", "    8 | }", "    9 | ?"];
        assert_eq!(rewritten("main.c", Stage::Compile, &shown), told);
        let shown = ["  --> main.rs:12:1", "12 | x", "5  + use y;", " --> other.rs:5:1", "5 | x"];
        let told = ["  --> template:8:1", "8  | x", "2  + use y;", " --> other.rs:5:1", "5 | x"];
        assert_eq!(rewritten("main.rs", Stage::Compile, &shown), told);
    }

    #[test]
    fn a_line_of_nothing_but_names_is_read_in_one_go() {
        let line = "main.c:5".repeat(100_000);
        assert_eq!(rewritten("main.c", Stage::Run, &[&line])[0].len(), line.len());
    }
}
