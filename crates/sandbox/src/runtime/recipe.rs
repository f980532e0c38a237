use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sandbox_core::{Glob, LanguageChoice, RelativePath};
use serde::Deserialize;
use toml::Spanned;

use super::argument::{Argument, Text};
use super::limits::StageLimits;

/// How a language is compiled and run, as `runtime.toml` says it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recipe {
    name: Name,
    #[serde(default)]
    aliases: Vec<Name>,
    /// Extensions of its source files, without the dot.
    #[serde(default)]
    pub(crate) extensions: Vec<String>,
    /// Names that stand for it in a `#!` line.
    #[serde(default)]
    pub(crate) interpreters: Vec<String>,
    /// What code that came as text is called.
    entry: FilePath,
    pub(crate) toolchain: Toolchain,
    pub(crate) compile: Option<Compile>,
    pub(crate) run: Run,
    /// Variables in both stages.
    #[serde(default)]
    pub(crate) environment: BTreeMap<VariableName, Text>,
    #[serde(default)]
    pub(crate) limits: StageLimits,
    hello: Spanned<RawHello>,
    #[serde(skip)]
    resolved_hello: Hello,
}

/// Where the interpreter or compiler is, and how it tells its version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Toolchain {
    /// Paths or names, the preferred one first.
    pub(crate) programs: Programs,
    pub(crate) version: VersionRule,
    /// What a person types to get it.
    pub(crate) install: Option<String>,
}

/// How to read a version: the first token that looks like one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionRule {
    pub(crate) args: Vec<String>,
    /// Look only behind this text.
    pub(crate) after: Option<String>,
}

/// The compile stage.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compile {
    pub(crate) command: Command,
    /// What the run stage gets of what it leaves.
    artefacts: Artefacts,
}

/// The run stage.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    pub(crate) command: Command,
}

/// A program that shows that the language works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// Its code.
    pub code: String,
    /// What it prints.
    pub expected: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHello {
    code: Option<String>,
    file: Option<FilePath>,
    expected: String,
}

/// A mistake in a recipe: where, and what.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {reason}", file.display(), line.map_or(String::new(), |line| format!(", line {line}")))]
pub struct RecipeError {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1, if the mistake is on one.
    pub line: Option<usize>,
    /// What is wrong.
    pub reason: String,
}

impl Recipe {
    /// Reads a recipe. `read_beside` gives the text of a file that lies next to it.
    pub(crate) fn parse(
        file: &Path,
        text: &str,
        read_beside: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Self, RecipeError> {
        let mistake = |at: Option<usize>, reason: String| RecipeError {
            file: file.to_owned(),
            line: at.map(|at| line_of(text, at)),
            reason,
        };
        let mut recipe: Self = toml::from_str(text)
            .map_err(|error| mistake(error.span().map(|span| span.start), one_line(&error)))?;
        let hello = recipe.hello.get_ref();
        let code = match (&hello.code, &hello.file) {
            (Some(code), None) => Ok(code.clone()),
            (None, Some(path)) => read_beside(path.0.as_str()),
            _ => Err("hello needs either code or file".to_owned()),
        };
        recipe.resolved_hello = Hello {
            code: code.map_err(|reason| mistake(Some(recipe.hello.span().start), reason))?,
            expected: hello.expected.clone(),
        };
        Ok(recipe)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name.0
    }

    pub(crate) fn aliases(&self) -> impl Iterator<Item = &str> {
        self.aliases.iter().map(|alias| alias.0.as_str())
    }

    pub(crate) fn entry(&self) -> &RelativePath {
        &self.entry.0
    }

    pub(crate) fn hello(&self) -> &Hello {
        &self.resolved_hello
    }
}

impl Compile {
    /// Whether the compiler is told of every source, and so needs at least one.
    pub(crate) fn takes_sources(&self) -> bool {
        self.command.0.contains(&Argument::Sources)
    }

    pub(crate) fn artefacts(&self) -> &[Glob] {
        &self.artefacts.0
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.char_indices()
        .take_while(|(position, _)| *position < at)
        .filter(|(_, letter)| *letter == '\n')
        .count()
        + 1
}

/// The parser adds explanations on lines of their own; a message of ours is one line.
fn one_line(error: &toml::de::Error) -> String {
    let lines: Vec<&str> = error.message().lines().map(str::trim).collect();
    lines.join(", ")
}

/// A language name as requests write it.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Name(String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.parse::<LanguageChoice>() {
            Ok(choice) if choice.name() == text => Ok(Self(text)),
            _ => Err(format!(
                "'{text}' is not a language name: small letters, digits and + # - _ . only"
            )),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct FilePath(RelativePath);

impl TryFrom<String> for FilePath {
    type Error = sandbox_core::InvalidPath;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

/// The name of an environment variable.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct VariableName(pub(crate) String);

impl TryFrom<String> for VariableName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() || text.contains(['=', '\0']) {
            return Err(format!("'{}' is not a variable name", text.escape_debug()));
        }
        Ok(Self(text))
    }
}

/// A command whose first word can be started.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Vec<Argument>")]
pub(crate) struct Command(pub(crate) Vec<Argument>);

impl TryFrom<Vec<Argument>> for Command {
    type Error = &'static str;

    fn try_from(arguments: Vec<Argument>) -> Result<Self, Self::Error> {
        match arguments.first() {
            Some(first) if first.can_be_started() => Ok(Self(arguments)),
            _ => Err("a command begins with {program}, an absolute path, or ./ and a name"),
        }
    }
}

/// At least one program to look for.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub(crate) struct Programs(pub(crate) Vec<String>);

impl TryFrom<Vec<String>> for Programs {
    type Error = &'static str;

    fn try_from(programs: Vec<String>) -> Result<Self, Self::Error> {
        if programs.is_empty() {
            return Err("a toolchain needs at least one program to look for");
        }
        Ok(Self(programs))
    }
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "Vec<String>")]
struct Artefacts(Vec<Glob>);

impl TryFrom<Vec<String>> for Artefacts {
    type Error = String;

    fn try_from(patterns: Vec<String>) -> Result<Self, String> {
        if patterns.is_empty() {
            return Err("a compile stage needs at least one artefact".to_owned());
        }
        let globs: Result<_, _> = patterns.iter().map(|pattern| pattern.parse()).collect();
        globs.map(Self).map_err(|error: sandbox_core::InvalidGlob| error.to_string())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const GOOD: &str = r#"name = "toy"
aliases = ["toys"]
extensions = ["toy"]
entry = "main.toy"
[toolchain]
programs = ["/usr/bin/toy"]
version = { args = ["--version"] }
[compile]
command = ["{program}", "{sources}"]
artefacts = ["out/*"]
[run]
command = ["./out/{entry}"]
[environment]
TOY = "1"
[hello]
code = "hi"
expected = "hi\n"
"#;

    pub(crate) fn parse(text: &str) -> Result<Recipe, RecipeError> {
        Recipe::parse("toy/runtime.toml".as_ref(), text, |name| Err(format!("no {name} here")))
    }

    #[test]
    fn a_recipe_is_read_whole() {
        let recipe = parse(GOOD).unwrap();
        assert_eq!(recipe.name(), "toy");
        assert_eq!(recipe.entry().as_str(), "main.toy");
        assert_eq!(recipe.hello().code, "hi");
        assert!(recipe.compile.unwrap().artefacts()[0].matches("out/x"));
    }

    #[test]
    fn a_mistake_is_told_with_file_line_and_reason() {
        #[rustfmt::skip]
        let mistakes = [
            ("name = \"toy\"", "name = \"T oy\"", 1, "not a language name"),
            ("extensions", "extension", 3, "unknown field `extension`"),
            ("entry = \"main.toy\"", "entry = \"../x\"", 4, "'..'"),
            ("version = { args = [\"--version\"] }", "version = { arg = [] }", 7, "unknown field `arg`"),
            ("[\"/usr/bin/toy\"]", "[]", 6, "at least one program"),
            ("\"{sources}\"", "\"{source}\"", 9, "'{source}' is not a placeholder"),
            ("[\"out/*\"]", "[]", 10, "at least one artefact"),
            ("[\"out/*\"]", "[\"/x\"]", 10, "relative to the work directory"),
            ("[\"./out/{entry}\"]", "[]", 12, "a command begins with"),
            ("TOY = \"1\"", "TOY = 1", 14, "expected a string"),
            ("TOY = \"1\"", "\"A=B\" = \"1\"", 14, "'A=B' is not a variable name"),
            ("code = \"hi\"", "", 15, "either code or file"),
            ("code = \"hi\"", "file = \"hi.toy\"", 15, "no hi.toy here"),
            ("[hello]", "[limits.run]\nmemory = \"12Q\"\n[hello]", 16, "'12Q' is not a size"),
            ("[hello]", "[limits.run]\npids = 0\n[hello]", 15, "outside the range"),
            ("[hello]", "[hello", 15, ""),
        ];
        for (right, wrong, line, reason) in mistakes {
            let text = GOOD.replacen(right, wrong, 1);
            assert_ne!(text, GOOD, "{right} is not in the recipe");
            let error = parse(&text).unwrap_err();
            assert_eq!(error.line, Some(line), "{wrong}: {error}");
            assert!(error.reason.contains(reason), "{wrong}: {error}");
            assert!(!error.to_string().contains('\n'), "{error}");
            assert!(
                error.to_string().starts_with(&format!("toy/runtime.toml, line {line}: ")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_missing_key_is_named() {
        let error = parse(&GOOD.replace("entry = \"main.toy\"\n", "")).unwrap_err();
        assert!(error.reason.contains("missing field `entry`"), "{error}");
    }
}
