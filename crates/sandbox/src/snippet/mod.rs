//! Maps line numbers in error messages from the program that a template made to the user's code.
//!
//! Compilers and runtimes number the lines of the whole program. References to the entry file are rewritten to lines of the
//! user's code, or marked as lines of the template: in all output of the compile stage, and in the program's standard error.
//! The program's standard output is never changed. Without a template nothing is rewritten.
//!
//! Only whole lines can be rewritten, so with a template a line on standard error is forwarded when it is complete, and the
//! last one at the end of the stage. Each reference grows by a few bytes at most, so the output limit still bounds the text.

mod line;

use sandbox_core::{
    NetworkEvent, Observer, RelativePath, Request, Snippet, Stage, StageOutcome, StreamKind,
    UsageSample,
};

use line::Rewriter;

/// A longer line is data rather than a message, and is forwarded unchanged in pieces.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// The entry file, and the position of the user's code in it.
#[derive(Clone, Copy)]
pub(crate) struct Lines<'a> {
    entry: &'a RelativePath,
    snippet: &'a Snippet,
}

impl<'a> Lines<'a> {
    /// From a request; `None` without a template. Code text has the entry name of the recipe.
    pub(crate) fn of(request: &'a Request, entry_of_text: &'a RelativePath) -> Option<Self> {
        let entry = match request.code() {
            Some(_) => entry_of_text,
            None => &request.files().first()?.path,
        };
        Some(Self { entry, snippet: request.snippet()? })
    }

    fn rewrite(self, stage: Stage, text: &[u8]) -> Vec<u8> {
        let mut result = Vec::with_capacity(text.len());
        let mut stream = Stream::new(self, stage);
        stream.feed(text, &mut result);
        stream.end(&mut result);
        result
    }
}

/// Runs a stage, and rewrites its output for the observer and in the outcome.
pub(crate) fn rewrite_output<E>(
    lines: Option<&Lines<'_>>,
    stage: Stage,
    observer: &mut dyn Observer,
    run: impl FnOnce(&mut dyn Observer) -> Result<StageOutcome, E>,
) -> Result<StageOutcome, E> {
    let Some(lines) = lines.copied() else {
        return run(observer);
    };
    let mut rewriting = RewritingObserver {
        observer,
        stdout: (stage == Stage::Compile).then(|| Stream::new(lines, stage)),
        stderr: Stream::new(lines, stage),
        both: Vec::new(),
    };
    let outcome = run(&mut rewriting);
    let both = rewriting.end();
    let mut outcome = outcome?;
    outcome.stderr = lines.rewrite(stage, &outcome.stderr);
    match stage {
        // Compiler output is never user data. It can come from the cache, without passing the observer.
        Stage::Compile => {
            outcome.stdout = lines.rewrite(stage, &outcome.stdout);
            outcome.output = lines.rewrite(stage, &outcome.output);
        }
        Stage::Run => outcome.output = both,
    }
    Ok(outcome)
}

/// An observer that rewrites output and forwards it to another observer.
struct RewritingObserver<'a> {
    observer: &'a mut dyn Observer,
    /// `None` if standard output belongs to the program.
    stdout: Option<Stream<'a>>,
    stderr: Stream<'a>,
    both: Vec<u8>,
}

impl RewritingObserver<'_> {
    /// Forwards incomplete lines; returns everything that was forwarded.
    fn end(mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        if let Some(stdout) = &mut self.stdout {
            stdout.end(&mut rest);
            self.forward(StreamKind::Stdout, &rest);
            rest.clear();
        }
        self.stderr.end(&mut rest);
        self.forward(StreamKind::Stderr, &rest);
        self.both
    }

    fn forward(&mut self, stream: StreamKind, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.both.extend_from_slice(bytes);
            self.observer.output(stream, bytes);
        }
    }
}

impl Observer for RewritingObserver<'_> {
    fn output(&mut self, stream: StreamKind, bytes: &[u8]) {
        let lines = match stream {
            StreamKind::Stdout => self.stdout.as_mut(),
            StreamKind::Stderr => Some(&mut self.stderr),
        };
        let Some(lines) = lines else {
            return self.forward(stream, bytes);
        };
        let mut finished = Vec::new();
        lines.feed(bytes, &mut finished);
        self.forward(stream, &finished);
    }

    fn usage(&mut self, sample: UsageSample) {
        self.observer.usage(sample);
    }

    fn network(&mut self, event: NetworkEvent) {
        self.observer.network(event);
    }
}

/// One stream, split into lines.
struct Stream<'a> {
    rewriter: Rewriter<'a>,
    held: Vec<u8>,
}

impl<'a> Stream<'a> {
    fn new(lines: Lines<'a>, stage: Stage) -> Self {
        Self { rewriter: Rewriter::new(lines.entry, lines.snippet, stage), held: Vec::new() }
    }

    fn feed(&mut self, bytes: &[u8], result: &mut Vec<u8>) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.held.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.end(result);
            } else if self.held.len() > MAX_LINE_BYTES {
                result.append(&mut self.held);
            }
        }
    }

    fn end(&mut self, result: &mut Vec<u8>) {
        self.rewriter.rewrite(&self.held, result);
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::exited;
    use std::convert::Infallible;

    fn snippet() -> Snippet {
        Snippet {
            lines: 4..=8,
            first: 1,
            first_indent: 0,
            indent: 0,
            head: 3,
            tail: 9,
            tail_in_template: 5,
        }
    }

    #[derive(Default)]
    struct Heard(Vec<(StreamKind, String)>);

    impl Observer for Heard {
        fn output(&mut self, stream: StreamKind, bytes: &[u8]) {
            self.0.push((stream, String::from_utf8(bytes.to_vec()).unwrap()));
        }

        fn usage(&mut self, _: UsageSample) {}
    }

    /// The forwarded output, and the outcome, for a stage that writes these pieces.
    fn told(
        is_template: bool,
        stage: Stage,
        pieces: &[(StreamKind, &str)],
    ) -> (Vec<(StreamKind, String)>, StageOutcome) {
        let (entry, snippet) = ("main.c".parse().unwrap(), snippet());
        let lines = is_template.then_some(Lines { entry: &entry, snippet: &snippet });
        let mut heard = Heard::default();
        let outcome = rewrite_output(lines.as_ref(), stage, &mut heard, |observer| {
            let mut outcome = exited(1);
            for (stream, text) in pieces {
                observer.output(*stream, text.as_bytes());
                outcome.output.extend_from_slice(text.as_bytes());
                match stream {
                    StreamKind::Stdout => outcome.stdout.extend_from_slice(text.as_bytes()),
                    StreamKind::Stderr => outcome.stderr.extend_from_slice(text.as_bytes()),
                }
            }
            Ok::<_, Infallible>(outcome)
        });
        (heard.0, outcome.unwrap())
    }

    use StreamKind::{Stderr, Stdout};

    #[test]
    fn a_line_in_pieces_is_rewritten_when_it_is_whole() {
        let pieces = [(Stderr, "a\nmai"), (Stdout, "main.c:5"), (Stderr, "n.c:5\nmain.c:6")];
        let (heard, outcome) = told(true, Stage::Run, &pieces);
        let heard: Vec<_> = heard.iter().map(|(stream, text)| (*stream, text.as_str())).collect();
        assert_eq!(
            heard,
            [(Stderr, "a\n"), (Stdout, "main.c:5"), (Stderr, "main.c:2\n"), (Stderr, "main.c:3")]
        );
        assert_eq!(outcome.stderr, b"a\nmain.c:2\nmain.c:3");
        assert_eq!(outcome.stdout, b"main.c:5");
        assert_eq!(outcome.output, b"a\nmain.c:5main.c:2\nmain.c:3");
    }

    #[test]
    fn everything_a_compiler_prints_is_rewritten() {
        let pieces = [(Stdout, "main.c:5\n"), (Stderr, "main.c:12\n")];
        let (heard, outcome) = told(true, Stage::Compile, &pieces);
        assert_eq!(heard, [(Stdout, "main.c:2\n".into()), (Stderr, "template:8\n".into())]);
        assert_eq!(outcome.stdout, b"main.c:2\n");
        assert_eq!(outcome.stderr, b"template:8\n");
        assert_eq!(outcome.output, b"main.c:2\ntemplate:8\n");
    }

    #[test]
    fn without_a_template_not_a_byte_is_touched_nor_held() {
        let pieces = [(Stderr, "main.c:"), (Stderr, "5\nmain.c:12")];
        let (heard, outcome) = told(false, Stage::Run, &pieces);
        assert_eq!(heard, pieces.map(|(stream, text)| (stream, text.to_owned())));
        assert_eq!(outcome.stderr, b"main.c:5\nmain.c:12");
        assert_eq!(outcome.output, outcome.stderr);
    }

    #[test]
    fn a_line_without_an_end_is_not_held_for_ever() {
        let long = "x".repeat(MAX_LINE_BYTES + 1);
        let (heard, _) = told(true, Stage::Run, &[(Stderr, &long), (Stderr, "y\n")]);
        assert_eq!(heard, [(Stderr, long), (Stderr, "y\n".to_owned())]);
    }
}
