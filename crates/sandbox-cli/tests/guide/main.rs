//! Runs the commands of the guide, section by section, and compares their output.

mod output;
mod page;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use page::{Section, Step, only, sections};

const GUIDE: Page =
    Page { path: "docs/SANDBOX_RUN.md", text: include_str!("../../../../docs/SANDBOX_RUN.md") };
const README: Page = Page { path: "README.md", text: include_str!("../../../../README.md") };

/// A page of the manual.
struct Page {
    path: &'static str,
    text: &'static str,
}

/// One test for each section, and one that none is missing here.
macro_rules! sections {
    ($($name:ident: $title:literal,)*) => {
        $(#[test]
        fn $name() {
            do_section(&GUIDE, $title, cache_for($title));
        })*

        #[test]
        fn every_section_is_done() {
            let titles: Vec<String> =
                sections(GUIDE.text).into_iter().map(|section| section.title).collect();
            assert_eq!(titles, [$($title),*]);
        }
    };
}

sections! {
    set_up: "Set-up",
    first_run: "First run",
    input_and_arguments: "Input and arguments",
    files: "Files",
    limits: "Limits",
    projects: "Projects",
    templates: "Templates",
    packages: "Packages",
    workspaces: "Workspaces",
    compile_cache: "The compile cache",
    warm_starts: "Warm starts",
    network_access: "Network access",
    other_backends: "Other isolation backends",
    another_language: "Adding a language",
    reports: "Reports and exit codes",
    python: "Python",
    javascript: "JavaScript",
    typescript: "TypeScript",
    go: "Go",
    rust: "Rust",
    java: "Java",
    c: "C",
    cpp: "C++",
}

#[test]
fn examples_of_the_readme() {
    do_section(&README, "Examples", Cache::Empty);
}

fn cache_for(title: &str) -> Cache {
    match title {
        // What these show depends on what was there before.
        "The compile cache" | "Packages" => Cache::Empty,
        _ => Cache::Ours,
    }
}

fn do_section(page: &Page, title: &str, cache: Cache) {
    let section = sections(&only(page.text, title)).pop();
    let section = section.unwrap_or_else(|| panic!("{} has no section '{title}'", page.path));
    let checked = section.steps.iter().filter(|step| matches!(step, Step::Command { .. })).count();
    assert!(checked > 0, "the section '{title}' has no command");
    Reader::new(page.path, cache).follow(&section);
}

/// What the reader's runs find of earlier ones.
enum Cache {
    /// Nothing.
    Empty,
    /// What ours found: preparing a toolchain takes minutes, and is once for a machine.
    Ours,
}

/// Somebody who has the command and the toolchains, no configuration, and an empty directory.
struct Reader {
    /// What is read.
    page: &'static str,
    home: tempfile::TempDir,
    cache: Cache,
}

impl Reader {
    fn new(page: &'static str, cache: Cache) -> Self {
        let home = tempfile::tempdir().unwrap();
        for directory in ["work", "config", "cache", "data/sandbox-run", "run"] {
            fs::create_dir_all(home.path().join(directory)).unwrap();
        }
        // Toolchains that our set-up installed are part of the host.
        symlink(toolchains(), home.path().join("data/sandbox-run/toolchains")).unwrap();
        Self { page, home, cache }
    }

    fn follow(&self, section: &Section) {
        for step in &section.steps {
            match step {
                Step::File { path, contents } => self.write(path, contents),
                Step::Command { line, text, expected } => self.type_in(*line, text, expected),
            }
        }
    }

    fn write(&self, path: &str, contents: &str) {
        // A path that begins so is one of the reader's configuration.
        let path = match path.strip_prefix("~/.config/") {
            Some(rest) => self.home.path().join("config").join(rest),
            None => self.home.path().join("work").join(path),
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    fn shell(&self, text: &str) -> Command {
        let place = |name: &str| self.home.path().join(name);
        let mut shell = Command::new("/bin/sh");
        if let Cache::Empty = self.cache {
            shell.env("XDG_CACHE_HOME", place("cache"));
        }
        shell
            .args(["-c", &format!("exec 2>&1\n{text}")])
            .current_dir(place("work"))
            .env("PATH", path_with_the_command())
            .env("XDG_CONFIG_HOME", place("config"))
            .env("XDG_DATA_HOME", place("data"))
            .env("XDG_RUNTIME_DIR", place("run"))
            .stdin(Stdio::null());
        shell
    }

    fn type_in(&self, line: usize, text: &str, expected: &[String]) {
        let output = self.shell(text).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        // Blank lines between one command and the next are for the eye.
        let expected = expected.join("\n");
        let wanted: Vec<&str> = expected.trim_end().lines().collect();
        let lines: Vec<&str> = printed.trim_end().lines().collect();
        assert!(
            output::matches(&wanted, &lines),
            "{}, line {line}\n$ {text}\n--- is to print\n{expected}\n--- and printed\n{printed}",
            self.page
        );
        let status = output.status;
        assert!(status.success(), "{}, line {line}\n$ {text}\nended with {status}", self.page);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // A reader who stopped in the middle may have left a helper.
        let _ = self.shell("sandbox-run warm stop").output();
    }
}

fn path_with_the_command() -> String {
    let command = Path::new(env!("CARGO_BIN_EXE_sandbox-run"));
    let directory = command.parent().unwrap().display();
    format!("{directory}:{}", variable("PATH").unwrap())
}

fn toolchains() -> PathBuf {
    let data = variable("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.unwrap_or_else(|| Path::new(&variable("HOME").unwrap()).join(".local/share"));
    data.join("sandbox-run/toolchains")
}

#[expect(clippy::disallowed_methods, reason = "the reader's surroundings are made from ours")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
