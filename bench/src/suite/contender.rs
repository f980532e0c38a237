//! The ways to run a program: bare, in our sandbox, in a peer.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use sandbox::{CancelToken, Event, EventKind, Request, Sandbox, Status};

use super::peers::Peer;
use super::runner::Started;
use crate::cases::{self, Case, Payload, Run};
use crate::rounds::{Round, together};

/// How a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Bare,
    Prepared,
    Unprepared,
    Warm,
    Cold,
    Peer(Peer),
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Prepared => "ours, prepared",
            Self::Unprepared => "ours, nothing prepared",
            Self::Warm => "ours, warm",
            Self::Cold => "ours, cold",
            Self::Peer(peer) => peer.name(),
        }
    }

    /// What a row of this name contains.
    pub(crate) fn contents(self) -> &'static str {
        match self {
            Self::Bare => {
                "posix_spawn from a small process, output read to its end, waited for; no isolation"
            }
            Self::Prepared => {
                "from the plan to the outcome through the library's backend: every protection and every cgroup \
                 limit on; spare slots as by default"
            }
            Self::Unprepared => "the same without spare slots",
            Self::Warm => "from the request to the report through the library, as it is by default",
            Self::Cold => "the same without runtimes that were started ahead",
            Self::Peer(peer) => peer.contents(),
        }
    }
}

/// One way to run a program, repeatedly.
pub(super) trait Contender: Sync {
    /// Runs once and checks the result.
    fn run(&self) -> anyhow::Result<Run>;

    /// Runs repeatedly with this many workers in parallel, for this long.
    fn run_parallel(&self, workers: usize, length: Duration) -> anyhow::Result<Round> {
        together(workers, length, || || Ok(self.run()?.total))?.without_errors()
    }
}

/// A compiler and the program it made, with a source that is new each time.
pub(super) struct NewSource<'a> {
    pub(super) started: Started<'a>,
    pub(super) file: PathBuf,
    pub(super) source: Fresh,
}

impl Contender for NewSource<'_> {
    fn run(&self) -> anyhow::Result<Run> {
        std::fs::write(&self.file, self.source.next())?;
        self.started.run()
    }
}

/// A source text that is never the same twice.
pub(super) struct Fresh {
    text: String,
    /// Keeps those apart that are made at the same time, and those of an earlier benchmark, which the
    /// compile cache may remember.
    owner: String,
    made: AtomicUsize,
}

impl Fresh {
    pub(super) fn of(text: &str, owner: &str) -> Self {
        let owner = format!("{owner} {}", chrono::Utc::now().timestamp_micros());
        Self { text: text.to_owned(), owner, made: AtomicUsize::new(0) }
    }

    fn next(&self) -> String {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        format!("{}// {} {number}\n", self.text, self.owner)
    }
}

/// The small program through our backend.
pub(super) struct Small<'a>(pub(super) Case<'a>);

impl Contender for Small<'_> {
    fn run(&self) -> anyhow::Result<Run> {
        self.0.run(Payload::True)
    }
}

impl<'a> Small<'a> {
    pub(super) fn prepared(backend: &'a sandbox_backends::native::NativeBackend) -> Self {
        Self(Case::ours(Payload::True, cases::Way::Ours, backend))
    }
}

/// A program of some language through the library.
pub(super) struct Library<'a> {
    pub(super) sandbox: &'a Sandbox,
    pub(super) language: &'static str,
    pub(super) code: Code,
}

pub(super) enum Code {
    Same(String),
    Fresh(Fresh),
}

/// What every program of every language here prints.
pub(super) const HELLO: &str = "Hello, World!\n";

impl Contender for Library<'_> {
    fn run(&self) -> anyhow::Result<Run> {
        let code = match &self.code {
            Code::Same(code) => code.clone(),
            Code::Fresh(fresh) => fresh.next(),
        };
        let request = Request::builder(self.language).code(code).build()?;
        let mut first_output = None;
        let begun = Instant::now();
        let mut listener = |event: &Event| {
            if matches!(event.kind, EventKind::Output(..)) {
                first_output = first_output.or_else(|| Some(begun.elapsed()));
            }
        };
        let report = self.sandbox.execute_with(request, &mut listener, &CancelToken::new())?;
        let total = begun.elapsed();
        ensure!(
            report.status == Status::Completed && report.stdout == HELLO,
            "{}: {report:?}",
            self.language
        );
        Ok(Run { total, first_output, stages: None })
    }
}
