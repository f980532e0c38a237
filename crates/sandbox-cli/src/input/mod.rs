//! Gathers the program from `--code`, files, a project directory or standard input.

mod entry;
mod extra;
mod open;
mod paths;
mod program;
mod read;

use std::io::{self, IsTerminal};
use std::path::Path;

use crate::args::RunArgs;
use crate::errors::Failure;

pub(crate) use extra::extra_files;
pub(crate) use open::open;
pub(crate) use paths::absolute;
pub(crate) use program::{Languages, Program, SourceFile, first_line};
pub(crate) use read::read_text;

use program::{Gathered, OwnStdin};
use read::Budget;

const NO_CODE: &str = "no code given: name a file, use --code or pipe the code in, such as: \
     sandbox-run --lang python --code 'print(6 * 7)'";

/// Gathers the program that the arguments name. With `wants_code` false, a missing program is no error, because a
/// template can be the whole program.
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
            return Ok(Program::TemplateOnly.into());
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
        let text = "'-' (standard input) cannot be combined with other files: name only files, or only '-'";
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

/// The standard input of this process.
pub(crate) fn own_stdin(reader: &mut io::Stdin) -> OwnStdin<'_> {
    let (is_terminal, refusal) = (reader.is_terminal(), open::check_stdin(reader).err());
    OwnStdin { reader, is_terminal, refusal }
}

fn from_stdin(args: &RunArgs, stdin: OwnStdin<'_>) -> Result<Gathered, Failure> {
    if args.stdin.as_deref() == Some(Path::new("-")) {
        return Err(Failure::Usage(
            "cannot read both the code and the program's input from standard input: \
             give the code with --file or --code, or drop --stdin -"
                .to_owned(),
        ));
    }
    if args.entry.is_some() {
        return Err(Failure::Usage(
            "--entry cannot be used with code from standard input, which is a single file"
                .to_owned(),
        ));
    }
    if let Some(refusal) = stdin.refusal {
        return Err(refusal);
    }
    let code = Budget::new().read(stdin.reader, "standard input")?;
    if code.is_empty() {
        return Err(Failure::Usage(format!("standard input is empty: {NO_CODE}")));
    }
    let code = String::from_utf8(code).map_err(|_| {
        Failure::Usage("the code on standard input is not UTF-8: give it as a file".to_owned())
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
            "project directory '{}' cannot be combined with other source files: add them with --input",
            directory.display()
        )));
    }
    let mut budget = Budget::new();
    let inside = paths::below_common_directory(sources)?;
    let mut files = Vec::with_capacity(sources.len());
    for (source, path) in sources.iter().zip(inside) {
        let contents = read::file(source, &mut budget).map_err(|failure| {
            // A misspelled command is parsed as a file name: suggest the command.
            match similar_command(source) {
                Some(command) if !source.exists() => Failure::Usage(format!(
                    "no such file '{}'; did you mean the command '{command}'?",
                    source.display()
                )),
                _ => failure,
            }
        })?;
        files.push(SourceFile { path, contents });
    }
    Ok(files)
}

fn similar_command(path: &Path) -> Option<&'static str> {
    match path.to_str()? {
        "runtime" | "languages" | "list" => Some("runtimes"),
        "doctors" | "check" | "info" => Some("doctor"),
        "completion" => Some("completions"),
        "help" => Some("--help"),
        "version" => Some("--version"),
        _ => None,
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
    fn code_is_taken_from_the_flag_then_files_then_standard_input() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.py");
        fs::write(&path, "file").unwrap();
        let flag = RunArgs::from_line(&["--code", "flag"]);
        let file = RunArgs::from_line(&[path.to_str().unwrap()]);
        assert_eq!(gathered(&flag, "stdin", false).unwrap(), Program::Text("flag".into()));
        let files = vec![SourceFile { path: "a.py".into(), contents: b"file".to_vec() }];
        assert_eq!(gathered(&file, "stdin", false).unwrap(), Program::Files(files));
        let nothing = RunArgs::from_line(&[]);
        assert_eq!(gathered(&nothing, "stdin", false).unwrap(), Program::Text("stdin".into()));
    }

    #[test]
    fn a_terminal_is_not_read() {
        let message = message(gathered(&RunArgs::from_line(&[]), "", true));
        assert!(message.contains("--code") && message.contains("such as"), "{message}");
    }

    #[test]
    fn standard_input_cannot_be_both_code_and_input() {
        let args = RunArgs::from_line(&["--stdin", "-"]);
        let message = message(gathered(&args, "x", false));
        assert!(message.contains("both the code and"), "{message}");
    }

    #[test]
    fn a_misspelled_command_is_corrected() {
        let args = RunArgs::from_line(&["runtime"]);
        let message = message(gathered(&args, "", false));
        assert!(message.contains("'runtimes'"), "{message}");
    }
}
