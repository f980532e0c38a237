//! The cost of compiling: bare, uncached, cached, and once for each
//! toolchain.
//!
//! The programs are the hello programs of the recipes, each with a comment at its end that makes it a
//! program that is in no cache. All ways take turns in every round.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};
use sandbox::{Request, Sandbox, Status};
use serde_json::{Value, json};

use crate::cases::Run;
use crate::host::HostFacts;
use crate::measure::{Series, ratio};
use crate::table::{grid, millis};

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
    name: &'static str,
    version: String,
    /// The first program ever, in an empty store.
    first: std::time::Duration,
    series: Vec<(Way, Series)>,
}

/// Measures, prints, and writes `compile.json` and `compile.txt`. Ends with 1 if a program that was
/// compiled before takes longer than compiling it bare.
pub(crate) fn run(rounds: usize, results: &Path) -> anyhow::Result<ExitCode> {
    let place = tempfile::tempdir().context("make a directory for the store")?;
    let sandbox = Sandbox::builder().store_directory(place.path().join("store")).build()?;
    let host = HostFacts::gather("");
    let languages: anyhow::Result<Vec<_>> = LANGUAGES
        .iter()
        .map(|language| measure(language, &sandbox, place.path(), rounds))
        .collect();
    let findings = Findings { host, languages: languages? };
    let text = render(&findings);
    std::io::stdout().write_all(text.as_bytes()).context("print the results")?;
    std::fs::create_dir_all(results)?;
    let json = serde_json::to_string_pretty(&to_json(&findings))? + "\n";
    for (name, contents) in [("compile.json", &json), ("compile.txt", &text)] {
        let path = results.join(name);
        std::fs::write(&path, contents).with_context(|| format!("write {}", path.display()))?;
    }
    let dearer = findings.languages.iter().any(|language| language.ratio(Way::Known) >= 1.0);
    Ok(ExitCode::from(u8::from(dearer)))
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
    let mut series = Way::ALL.map(|way| (way, Series::default()));
    for round in 0..rounds {
        let new = format!("{source}// {round}\n");
        for turn in 0..series.len() {
            // Another one begins in every round.
            let (way, series) = &mut series[(turn + round) % Way::ALL.len()];
            let started = Instant::now();
            match way {
                Way::Bare => bare.run(&new)?,
                Way::New => execute(sandbox, language, &new)?,
                Way::Known => execute(sandbox, language, &source)?,
            }
            series.push(Run::lasting(started.elapsed()));
        }
    }
    let version = runtime.version().to_owned();
    Ok(LanguageFindings { name: language.name, version, first, series: series.into() })
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

impl LanguageFindings {
    fn series_of(&self, wanted: Way) -> &Series {
        let found = self.series.iter().find(|(way, _)| *way == wanted);
        &found.expect("every way was measured").1
    }

    /// The median of a way over the bare one's.
    fn ratio(&self, way: Way) -> f64 {
        let median = |way| self.series_of(way).summary().median;
        ratio(median(way), median(Way::Bare))
    }
}

fn render(findings: &Findings) -> String {
    let mut text = String::from("Compiling and running hello\n\n");
    for line in findings.host.lines() {
        text.push_str(&line);
        text.push('\n');
    }
    let heads = ["ms", "runs", "median", "p95", "× bare", "× bare by round"];
    for language in &findings.languages {
        let bare = language.series_of(Way::Bare);
        let noisy = if bare.summary().is_noisy() { ", noisy" } else { "" };
        let rows = language.series.iter().map(|(way, series)| {
            let summary = series.summary();
            vec![
                way.name().to_owned(),
                summary.count.to_string(),
                millis(summary.median),
                millis(summary.p95),
                format!("{:.2}", language.ratio(*way)),
                format!("{:.2}", series.ratio_by_round(bare)),
            ]
        });
        let (name, version) = (language.name, &language.version);
        let _ = writeln!(text, "\n{name} {version}{noisy}\n{}", grid(&heads, rows));
        let first = millis(language.first);
        let _ = writeln!(text, " the first program with this toolchain: {first} ms");
    }
    text.push_str("\nWhat a row contains\n");
    for way in Way::ALL {
        let _ = writeln!(text, "  {}: {}", way.name(), way.contents());
    }
    text
}

fn to_json(findings: &Findings) -> Value {
    let micros = |time: std::time::Duration| (time.as_secs_f64() * 1e6).round();
    let languages = findings.languages.iter().map(|language| {
        let ways = language.series.iter().map(|(way, series)| {
            let summary = series.summary();
            json!({
                "way": way.name(),
                "runs": summary.count,
                "median_us": micros(summary.median),
                "p95_us": micros(summary.p95),
                "ratio_to_bare": (language.ratio(*way) * 1000.0).round() / 1000.0,
            })
        });
        json!({
            "language": language.name,
            "version": language.version,
            "noisy": language.series_of(Way::Bare).summary().is_noisy(),
            "first_us": micros(language.first),
            "ways": ways.collect::<Vec<_>>(),
        })
    });
    json!({
        "benchmark": "compile",
        "host": findings.host.to_json(),
        "languages": languages.collect::<Vec<_>>(),
    })
}
