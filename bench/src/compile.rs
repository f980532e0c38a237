//! The cost of compiling: bare, uncached, cached, and once for each
//! toolchain.
//!
//! The programs are the hello programs of the recipes, each with a comment at its end that makes it a
//! program that is in no cache. All ways take turns in every round.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use sandbox::{Request, Sandbox, Status};
use serde_json::{Value, json};

use crate::cases::Run;
use crate::host::HostFacts;
use crate::measure::{Comparison, Pacing, in_turns};
use crate::table::{grid, micros, millis, publish, rounded};
use crate::usize_in;

#[derive(Args)]
pub(crate) struct Plan {
    /// Programs of each language
    #[arg(long, default_value_t = 15, value_parser = usize_in(2..=1000))]
    rounds: usize,
    /// Directory for compile.json and compile.txt
    #[arg(long, value_name = "DIRECTORY", default_value = "bench/results")]
    results: PathBuf,
}

/// A language, and what a person types to compile and run one file of it.
struct Language {
    name: &'static str,
    file: &'static str,
    /// Shell commands in the directory of the file; `$program` is the compiler.
    bare: &'static str,
}

const LANGUAGES: &[Language] = &[
    Language { name: "c", file: "main.c", bare: "$program -O2 -o program main.c && ./program" },
    Language {
        name: "cpp",
        file: "main.cpp",
        bare: "$program -O2 -o program main.cpp && ./program",
    },
    Language {
        name: "go",
        file: "main.go",
        bare: "$program build -o program main.go && ./program",
    },
    Language { name: "rust", file: "main.rs", bare: "$program -O -o program main.rs && ./program" },
    Language {
        name: "java",
        file: "Main.java",
        bare: "$program Main.java && $(dirname $program)/java Main",
    },
];

/// How a program is compiled and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Bare,
    New,
    Known,
}

impl Way {
    const ALL: [Self; 3] = [Self::Bare, Self::New, Self::Known];

    fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::New => "ours, a new program",
            Self::Known => "ours, compiled before",
        }
    }

    fn contents(self) -> &'static str {
        match self {
            Self::Bare => {
                "the compiler's usual command in a shell, then the program; the compiler's own cache \
                 is warm; no isolation"
            }
            Self::New => {
                "from the request to the report: compiled in one sandbox, run in another, every protection \
                 and limit on; what is made once for the toolchain is there"
            }
            Self::Known => "the same request again: looked up, verified, and run",
        }
    }
}

struct Findings {
    host: HostFacts,
    languages: Vec<LanguageFindings>,
}

struct LanguageFindings {
    /// The first program ever, in an empty store.
    first: Duration,
    comparison: Comparison<Way>,
}

/// Measures, prints, and writes the results. Ends with 1 if a program that was compiled before takes longer than
/// compiling it bare.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<ExitCode> {
    let place = tempfile::tempdir().context("make a directory for the store")?;
    let sandbox = Sandbox::builder().store_directory(place.path().join("store")).build()?;
    let host = HostFacts::gather("");
    let languages: anyhow::Result<Vec<_>> = LANGUAGES
        .iter()
        .map(|language| measure(language, &sandbox, place.path(), plan.rounds))
        .collect();
    let findings = Findings { host, languages: languages? };
    publish("compile", &render(&findings), &to_json(&findings), Some(&plan.results))?;
    let is_dearer =
        |language: &LanguageFindings| language.comparison.ratio(Way::Known) >= Some(1.0);
    Ok(ExitCode::from(u8::from(findings.languages.iter().any(is_dearer))))
}

fn measure(
    language: &Language,
    sandbox: &Sandbox,
    place: &Path,
    rounds: usize,
) -> anyhow::Result<LanguageFindings> {
    let runtime = sandbox.runtimes().resolve(&language.name.parse()?)?;
    let hello = sandbox.runtimes().hello(language.name).context("the recipe has a hello")?;
    let source = hello.code.replace("public class Hello", "public class Main");
    let bare = Bare::new(language, runtime.program(), place)?;
    let started = Instant::now();
    execute(sandbox, language, &source)?;
    let first = started.elapsed();
    // The compiler's own cache, which everybody has.
    bare.run(&source)?;
    let series = in_turns(Way::ALL.len(), 0, rounds, |way, round| {
        let new = format!("{source}// {round}\n");
        let started = Instant::now();
        match Way::ALL[way] {
            Way::Bare => bare.run(&new)?,
            Way::New => execute(sandbox, language, &new)?,
            Way::Known => execute(sandbox, language, &source)?,
        }
        Ok(vec![Run::lasting(started.elapsed())])
    })?;
    let comparison = Comparison {
        subject: language.name,
        version: runtime.version().to_owned(),
        pacing: Pacing::Turns,
        series: Way::ALL.into_iter().zip(series).collect(),
    };
    Ok(LanguageFindings { first, comparison })
}

fn execute(sandbox: &Sandbox, language: &Language, source: &str) -> anyhow::Result<()> {
    let report = sandbox.execute(Request::builder(language.name).code(source).build()?)?;
    if report.status != Status::Completed || report.stdout != "Hello, World!\n" {
        bail!("{}: {:?}: {}", language.name, report.error, report.output);
    }
    Ok(())
}

/// Compiling as people do it without a sandbox.
struct Bare<'a> {
    language: &'a Language,
    program: PathBuf,
    directory: PathBuf,
}

impl<'a> Bare<'a> {
    fn new(language: &'a Language, program: &Path, place: &Path) -> anyhow::Result<Self> {
        let directory = place.join(language.name);
        std::fs::create_dir_all(&directory)?;
        Ok(Self { language, program: program.to_owned(), directory })
    }

    fn run(&self, source: &str) -> anyhow::Result<()> {
        std::fs::write(self.directory.join(self.language.file), source)?;
        let output = Command::new("/bin/sh")
            .args(["-c", self.language.bare])
            .current_dir(&self.directory)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", &self.directory)
            .env("program", &self.program)
            .stdin(Stdio::null())
            .output()?;
        if !output.status.success() {
            bail!("{}: {}", self.language.name, String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }
}

fn render(findings: &Findings) -> String {
    let mut text = format!("Compiling and running hello\n\n{}", findings.host.text());
    let heads = ["ms", "runs", "median", "p95", "× bare", "× bare by round"];
    for LanguageFindings { first, comparison } in &findings.languages {
        let noisy = if comparison.is_noisy() { ", noisy" } else { "" };
        let rows = comparison.series.iter().map(|(way, series)| {
            let summary = series.summary();
            vec![
                way.name().to_owned(),
                summary.count.to_string(),
                millis(summary.median),
                millis(summary.p95),
                format!("{:.2}", comparison.ratio(*way).unwrap_or_default()),
                format!("{:.2}", series.ratio_by_round(comparison.bare())),
            ]
        });
        let Comparison { subject, version, .. } = comparison;
        let _ = writeln!(text, "\n{subject} {version}{noisy}\n{}", grid(&heads, rows));
        let first = millis(*first);
        let _ = writeln!(text, " the first program with this toolchain: {first} ms");
    }
    text.push_str("\nWhat a row contains\n");
    for way in Way::ALL {
        let _ = writeln!(text, "  {}: {}", way.name(), way.contents());
    }
    text
}

fn to_json(findings: &Findings) -> Value {
    let languages = findings.languages.iter().map(|LanguageFindings { first, comparison }| {
        let ways = comparison.series.iter().map(|(way, series)| {
            let summary = series.summary();
            json!({
                "way": way.name(),
                "runs": summary.count,
                "median_us": micros(summary.median),
                "p95_us": micros(summary.p95),
                "ratio_to_bare": comparison.ratio(*way).map(rounded),
            })
        });
        json!({
            "language": comparison.subject,
            "version": comparison.version,
            "noisy": comparison.is_noisy(),
            "first_us": micros(*first),
            "ways": ways.collect::<Vec<_>>(),
        })
    });
    json!({
        "benchmark": "compile",
        "host": findings.host.to_json(),
        "languages": languages.collect::<Vec<_>>(),
    })
}
