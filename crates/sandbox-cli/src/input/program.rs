//! The types that gathering the program produces and needs.

use std::io::Read;

use crate::errors::Failure;

/// What gathering needs to know about languages.
#[derive(Clone, Copy)]
pub(crate) struct Languages<'a> {
    /// The language of a file, by its name and first line.
    pub(crate) of_file: &'a dyn Fn(&str, &str) -> Option<String>,
    /// The canonical name of a language that was named by name or alias, with or without a version.
    pub(crate) named: &'a dyn Fn(&str) -> Result<String, Failure>,
    /// The language of a project, if one of its paths identifies it.
    pub(crate) of_project: &'a dyn Fn(&[&str]) -> Option<String>,
    /// The path at which a project of this language starts by convention.
    pub(crate) entry: &'a dyn Fn(&str, &[&str]) -> Option<String>,
}

/// A file to place in the work directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) contents: Vec<u8>,
}

/// The program to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Source text; the language names its file.
    Text(String),
    /// Files; the first is the entry point.
    Files(Vec<SourceFile>),
    /// No code: the template is the whole program.
    TemplateOnly,
}

/// The standard input of this command.
pub(crate) struct OwnStdin<'a> {
    pub(crate) reader: &'a mut dyn Read,
    pub(crate) is_terminal: bool,
    /// Why it must not be read, if so.
    pub(crate) refusal: Option<Failure>,
}

/// The program, and notes to print about it.
pub(crate) struct Gathered {
    pub(crate) program: Program,
    pub(crate) notes: Vec<String>,
}

impl From<Program> for Gathered {
    fn from(program: Program) -> Self {
        Self { program, notes: Vec::new() }
    }
}

/// The first line as text, for its `#!`.
pub(crate) fn first_line(contents: &[u8]) -> String {
    let line = contents.split(|byte| *byte == b'\n').next().unwrap_or(&[]);
    String::from_utf8_lossy(&line[..line.len().min(256)]).into_owned()
}
