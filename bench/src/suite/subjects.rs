//! The programs, and every way to run each.

use anyhow::Context;

use super::contender::{Code, Contender, Fresh, HELLO, Library, NewSource, Small, Way};
use super::peers::Guest;
use super::process::{Process, words};
use super::runner::Started;
use super::setup::Setup;
use crate::cases::{Case, Payload, Way as CaseWay};

/// Compiled languages whose artefact is looked up.
const COMPILED: [(&str, &str); 4] = [("C", "c"), ("C++", "cpp"), ("Go", "go"), ("Rust", "rust")];

/// A program, and the ways to run it; the first one is the bare one.
pub(super) struct Subject<'a> {
    pub(super) name: &'static str,
    pub(super) version: String,
    pub(super) ways: Vec<(Way, Box<dyn Contender + 'a>)>,
    /// What cannot be compared here, in words.
    pub(super) complaints: Vec<String>,
    /// One run takes the time of many others.
    pub(super) is_long: bool,
}

/// Names that judgements look for.
pub(crate) const TRUE: &str = "/bin/true";
pub(crate) const PYTHON: &str = "Python hello";
pub(crate) const NODE: &str = "Node hello";
pub(crate) const JAVA: &str = "Java hello, compiled and run";

/// The name of an artefact's rows.
pub(crate) fn compiled_before(language: &str) -> &'static str {
    match language {
        "C" => "C hello, compiled before",
        "C++" => "C++ hello, compiled before",
        "Go" => "Go hello, compiled before",
        _ => "Rust hello, compiled before",
    }
}

/// Every program that this host can run; what it cannot is said in `missing`.
pub(super) fn all<'a>(
    setup: &'a Setup,
    missing: &mut Vec<String>,
) -> anyhow::Result<Vec<Subject<'a>>> {
    let mut subjects = vec![small(setup)?, python(setup)?];
    let more = [("javascript", node(setup)), ("java", java(setup))];
    let compiled = COMPILED.map(|(name, language)| (language, artefact(setup, name, language)));
    for (language, subject) in more.into_iter().chain(compiled) {
        match subject {
            Ok(subject) => subjects.push(subject),
            Err(error) => missing.push(format!("{language}: {error:#}")),
        }
    }
    Ok(subjects)
}

pub(super) fn small(setup: &Setup) -> anyhow::Result<Subject<'_>> {
    let guest = Guest { name: TRUE, command: words([TRUE]), expected: "" };
    let unprepared = Small(Case::ours(Payload::True, CaseWay::OursUnprepared, &setup.unprepared));
    let mut subject = Subject::of(TRUE, String::new());
    subject.ways = vec![
        (Way::Bare, bare(setup, &guest)?),
        (Way::Prepared, Box::new(Small::prepared(&setup.prepared))),
        (Way::Unprepared, Box::new(unprepared)),
    ];
    subject.add_peers(setup, &guest);
    Ok(subject)
}

pub(super) fn python(setup: &Setup) -> anyhow::Result<Subject<'_>> {
    interpreted(setup, PYTHON, "python", "-c", "print('Hello, World!')")
}

fn node(setup: &Setup) -> anyhow::Result<Subject<'_>> {
    interpreted(setup, NODE, "javascript", "-e", "console.log('Hello, World!')")
}

fn interpreted<'a>(
    setup: &'a Setup,
    name: &'static str,
    language: &'static str,
    option: &str,
    code: &str,
) -> anyhow::Result<Subject<'a>> {
    let runtime = setup.warm.runtimes().resolve(&language.parse()?)?;
    let program = runtime.program().to_string_lossy().into_owned();
    let guest = Guest { name, command: words([program.as_str(), option, code]), expected: HELLO };
    let mut subject = Subject::of(name, runtime.version().to_owned());
    subject.ways.push((Way::Bare, bare(setup, &guest)?));
    subject.add_ours(setup, language, |_| Code::Same(code.to_owned()))?;
    subject.add_peers(setup, &guest);
    Ok(subject)
}

fn java(setup: &Setup) -> anyhow::Result<Subject<'_>> {
    let runtime = setup.warm.runtimes().resolve(&"java".parse()?)?;
    let source = setup.hello("java")?;
    let directory = setup.directory("java")?;
    let compiler = runtime.program();
    let machine = compiler.with_file_name("java");
    let (compiler, machine) = (compiler.to_string_lossy(), machine.to_string_lossy());
    let process = Process {
        commands: vec![words([&*compiler, "Main.java"]), words([&*machine, "Main"])],
        directory: directory.clone(),
        expected: HELLO.into(),
    };
    let (file, fresh) = (directory.join("Main.java"), Fresh::of(&source, "bare"));
    let started = Started { process, runner: &setup.outside };
    let bare = NewSource { started, file, source: fresh };
    bare.run()?;
    let mut subject = Subject::of(JAVA, runtime.version().to_owned());
    subject.is_long = true;
    subject.ways.push((Way::Bare, Box::new(bare)));
    subject.add_ours(setup, "java", |way| Code::Fresh(Fresh::of(&source, way.name())))?;
    Ok(subject)
}

fn artefact<'a>(
    setup: &'a Setup,
    name: &'static str,
    language: &'static str,
) -> anyhow::Result<Subject<'a>> {
    let runtime = setup.warm.runtimes().resolve(&language.parse()?)?;
    let code = setup.hello(language)?;
    let program = setup.artefact(language, &code)?.to_string_lossy().into_owned();
    let guest = Guest { name: compiled_before(name), command: words([program]), expected: HELLO };
    let mut subject = Subject::of(guest.name, runtime.version().to_owned());
    subject.ways.push((Way::Bare, bare(setup, &guest)?));
    subject.add_ours(setup, language, |_| Code::Same(code.clone()))?;
    Ok(subject)
}

fn bare<'a>(setup: &'a Setup, guest: &Guest) -> anyhow::Result<Box<dyn Contender + 'a>> {
    let process = Process {
        commands: vec![guest.command.clone()],
        directory: setup.directory("bare")?,
        expected: guest.expected.into(),
    };
    let bare = Started { process, runner: &setup.outside };
    bare.run().with_context(|| format!("{} without a sandbox", guest.name))?;
    Ok(Box::new(bare))
}

impl<'a> Subject<'a> {
    fn of(name: &'static str, version: String) -> Self {
        Self { name, version, ways: Vec::new(), complaints: Vec::new(), is_long: false }
    }

    fn add_ours(
        &mut self,
        setup: &'a Setup,
        language: &'static str,
        code: impl Fn(Way) -> Code,
    ) -> anyhow::Result<()> {
        for (way, sandbox) in [(Way::Warm, &setup.warm), (Way::Cold, &setup.cold)] {
            let library = Library { sandbox, language, code: code(way) };
            // What is made once for a toolchain is made now.
            library.run()?;
            self.ways.push((way, Box::new(library)));
        }
        Ok(())
    }

    fn add_peers(&mut self, setup: &'a Setup, guest: &Guest) {
        let (peers, complaints) = setup.peers.contenders(guest, &setup.outside);
        self.ways.extend(peers.into_iter().map(|(peer, contender)| (Way::Peer(peer), contender)));
        self.complaints.extend(complaints);
    }

    /// One of the ways.
    pub(super) fn way(&self, wanted: Way) -> anyhow::Result<&dyn Contender> {
        let found = self.ways.iter().find(|(way, _)| *way == wanted);
        found.map(|(_, contender)| contender.as_ref()).context("this way is not there")
    }
}
