//! Gathers the program: from `--code`, from files, from a project directory or from standard input.

mod entry;
mod extra;
mod open;
mod place;
mod read;

use std::io::{self, IsTerminal, Read};
use std::path::Path;

use sandbox::RelativePath;

use crate::args::RunArgs;
use crate::errors::Failure;

pub(crate) use extra::extra_files;
pub(crate) use open::open;
pub(crate) use place::absolute;
pub(crate) use read::read_text;

use read::Budget;

/// What is known of languages, as far as it is needed here.
#[derive(Clone, Copy)]
pub(crate) struct Languages<'a> {
    /// The language of a file, by its name and first line.
    pub(crate) of_file: &'a dyn Fn(&str, &str) -> Option<String>,
    /// The proper name of a language that was named by name or alias, with or without a version.
    pub(crate) named: &'a dyn Fn(&str) -> Result<String, Failure>,
    /// The language of a project, if one of its paths tells.
    pub(crate) of_project: &'a dyn Fn(&[&str]) -> Option<String>,
    /// Which of the paths of a project of a language is where it starts, by its conventions.
    pub(crate) entry: &'a dyn Fn(&str, &[&str]) -> Option<String>,
}

/// A file for the work directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) contents: Vec<u8>,
}

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Text, whose file the language names.
    Text(String),
    /// Files; the first is where it starts.
    Files(Vec<SourceFile>),
    /// Nothing but a template.
    Nothing,
}

/// Standard input as this command finds it.
pub(crate) struct OwnStdin<'a> {
    pub(crate) reader: &'a mut dyn Read,
    pub(crate) is_terminal: bool,
    /// Why it is not read, if so.
    pub(crate) refusal: Option<Failure>,
}

/// The program, and things worth saying about it.
pub(crate) struct Gathered {
    pub(crate) program: Program,
    pub(crate) notes: Vec<String>,
}

const NO_CODE: &str = "there is no code: give a file, --code, or pipe the code in, such as: \
     sandbox-run --lang python --code 'print(6 * 7)'";

/// Finds the program that the arguments speak of. `wants_code` says whether the lack of any is an
/// error: a template can stand alone.
pub(crate) fn gather(
    args: &RunArgs,
    wants_code: bool,
    languages: Languages<'_>,
    stdin: OwnStdin<'_>,
) -> Result<Gathered, Failure> {
    let sources = args.sources();
    if let Some(code) = &args.code {
        return Ok(Program::Text(code.clone()).into());
    }
    if sources.is_empty() {
        if !wants_code {
            return Ok(Program::Nothing.into());
        }
        if stdin.is_terminal {
            return Err(Failure::Usage(NO_CODE.to_owned()));
        }
        return from_stdin(args, stdin);
    }
    if sources == [Path::new("-")] {
        return from_stdin(args, stdin);
    }
    if sources.contains(&Path::new("-")) {
        let text = "'-' reads the only file from standard input: it cannot stand beside others";
        return Err(Failure::Usage(text.to_owned()));
    }
    if let [directory] = sources[..]
        && directory.is_dir()
    {
        return project(args, directory, languages);
    }
    if let [file] = sources[..]
        && open::is_stream(file)
    {
        return Ok(Program::Text(read_text(file)?).into());
    }
    let mut files = named_files(&sources)?;
    if let Some(entry) = &args.entry {
        entry::put_first(&mut files, entry, None)?;
    }
    Ok(Program::Files(files).into())
}

/// The process's own standard input.
pub(crate) fn own_stdin(reader: &mut io::Stdin) -> OwnStdin<'_> {
    let (is_terminal, refusal) = (reader.is_terminal(), open::check_stdin(reader).err());
    OwnStdin { reader, is_terminal, refusal }
}

fn from_stdin(args: &RunArgs, stdin: OwnStdin<'_>) -> Result<Gathered, Failure> {
    if args.stdin.as_deref() == Some(Path::new("-")) {
        return Err(Failure::Usage(
            "standard input already brings the code, so '--stdin -' has nothing left to read: \
             give the code with --file or --code"
                .to_owned(),
        ));
    }
    if args.entry.is_some() {
        return Err(Failure::Usage(
            "--entry names one of several files, and the code comes from standard input".to_owned(),
        ));
    }
    if let Some(refusal) = stdin.refusal {
        return Err(refusal);
    }
    let code = Budget::new().read(stdin.reader, "standard input")?;
    if code.is_empty() {
        return Err(Failure::Usage(format!("standard input is empty, and {NO_CODE}")));
    }
    let code = String::from_utf8(code).map_err(|_| {
        Failure::Usage("the code on standard input is not UTF-8 text: give it as a file".to_owned())
    })?;
    Ok(Program::Text(code).into())
}

fn project(
    args: &RunArgs,
    directory: &Path,
    languages: Languages<'_>,
) -> Result<Gathered, Failure> {
    let walked = read::directory(directory, &mut Budget::new())?;
    let mut files = walked.files;
    match &args.entry {
        Some(entry) => entry::put_first(&mut files, entry, Some(directory))?,
        None => entry::find(&mut files, directory, args.lang.as_deref(), languages)?,
    }
    Ok(Gathered { program: Program::Files(files), notes: walked.notes })
}

fn named_files(sources: &[&Path]) -> Result<Vec<SourceFile>, Failure> {
    if let Some(directory) = sources.iter().find(|path| path.is_dir()) {
        return Err(Failure::Usage(format!(
            "'{}' is a directory, and a project stands alone: add other files with --input",
            directory.display()
        )));
    }
    let mut budget = Budget::new();
    let paths = place::below_common_directory(sources)?;
    let mut files = Vec::with_capacity(sources.len());
    for (source, path) in sources.iter().zip(paths) {
        let contents = read::file(source, &mut budget).map_err(|failure| {
            // A word that is nearly a command is read as a file name: say so.
            match command_like(source) {
                Some(command) if !source.exists() => Failure::Usage(format!(
                    "there is no file '{}'; the command is called '{command}'",
                    source.display()
                )),
                _ => failure,
            }
        })?;
        files.push(SourceFile { path, contents });
    }
    Ok(files)
}

fn command_like(path: &Path) -> Option<&'static str> {
    match path.to_str()? {
        "runtime" | "languages" | "list" => Some("runtimes"),
        "doctors" | "check" | "info" => Some("doctor"),
        "completion" => Some("completions"),
        "help" => Some("--help"),
        "version" => Some("--version"),
        _ => None,
    }
}

/// Checks a path of the command line as one below the work directory.
pub(crate) fn inside(path: &str) -> Result<String, Failure> {
    let path: RelativePath = path.parse().map_err(|error| Failure::usage(&error))?;
    Ok(path.as_str().to_owned())
}

/// The first line as text, for its `#!`.
pub(crate) fn first_line(contents: &[u8]) -> String {
    let line = contents.split(|byte| *byte == b'\n').next().unwrap_or(&[]);
    String::from_utf8_lossy(&line[..line.len().min(256)]).into_owned()
}

impl From<Program> for Gathered {
    fn from(program: Program) -> Self {
        Self { program, notes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn gathered(args: &RunArgs, stdin: &str, is_terminal: bool) -> Result<Program, Failure> {
        let own = OwnStdin { reader: &mut stdin.as_bytes(), is_terminal, refusal: None };
        let languages = Languages {
            of_file: &|_, _| None,
            named: &|name| Ok(name.to_owned()),
            of_project: &|_| None,
            entry: &|_, _| None,
        };
        gather(args, true, languages, own).map(|gathered| gathered.program)
    }

    fn message(result: Result<Program, Failure>) -> String {
        result.unwrap_err().message().unwrap()
    }

    #[test]
    fn code_comes_from_the_flag_then_files_then_standard_input() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.py");
        fs::write(&path, "file").unwrap();
        let flag = RunArgs::typed(&["--code", "flag"]);
        let file = RunArgs::typed(&[path.to_str().unwrap()]);
        assert_eq!(gathered(&flag, "stdin", false).unwrap(), Program::Text("flag".into()));
        let files = vec![SourceFile { path: "a.py".into(), contents: b"file".to_vec() }];
        assert_eq!(gathered(&file, "stdin", false).unwrap(), Program::Files(files));
        let nothing = RunArgs::typed(&[]);
        assert_eq!(gathered(&nothing, "stdin", false).unwrap(), Program::Text("stdin".into()));
    }

    #[test]
    fn a_terminal_is_not_waited_for() {
        let message = message(gathered(&RunArgs::typed(&[]), "", true));
        assert!(message.contains("--code") && message.contains("such as"), "{message}");
    }

    #[test]
    fn standard_input_cannot_be_both_code_and_input() {
        let args = RunArgs::typed(&["--stdin", "-"]);
        let message = message(gathered(&args, "x", false));
        assert!(message.contains("already brings the code"), "{message}");
    }

    #[test]
    fn a_word_that_is_nearly_a_command_is_told_the_command() {
        let args = RunArgs::typed(&["runtime"]);
        let message = message(gathered(&args, "", false));
        assert!(message.contains("'runtimes'"), "{message}");
    }
}
