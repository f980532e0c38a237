//! A recipe (`runtime.toml`): how a language is found on a host, compiled and run.

mod layer;
mod packages;
mod toolchain;
mod values;
mod warm;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sandbox_core::{Glob, RelativePath};
use serde::Deserialize;
use toml::Spanned;

use super::argument::{Argument, Text};
use super::limits::StageLimits;
pub(crate) use layer::{Layer, place as layer_place};
pub(crate) use packages::{PackageManager, Packages};
pub use toolchain::Installer;
pub(crate) use toolchain::{Toolchain, VersionRule};
use values::{Artefacts, FilePath, Name, Patterns};
pub(crate) use values::{Command, VariableName};
pub(crate) use warm::Warm;

/// Variables and what they are set to.
pub(crate) type Variables = BTreeMap<VariableName, Text>;

/// How a language is compiled and run.
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
    /// File name for code that is sent as text.
    entry: FilePath,
    /// Patterns of a project's entry file, if no file has that name.
    #[serde(default)]
    entries: Patterns,
    /// Files at the top of a project that identify its language.
    #[serde(default)]
    pub(crate) markers: Vec<String>,
    pub(crate) toolchain: Toolchain,
    #[serde(default)]
    pub(crate) layers: BTreeMap<String, Layer>,
    pub(crate) compile: Option<Compile>,
    pub(crate) run: Run,
    /// Patterns of directories with packages installed on the host.
    #[serde(default)]
    pub(crate) host_packages: Vec<String>,
    /// How packages are installed, if supported.
    pub(crate) packages: Option<Packages>,
    /// Variables in both stages.
    #[serde(default)]
    pub(crate) environment: Variables,
    #[serde(default)]
    pub(crate) limits: StageLimits,
    hello: Spanned<RawHello>,
    #[serde(skip)]
    resolved_hello: Hello,
}

/// The compile stage.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compile {
    pub(crate) command: Command,
    /// How to start a warm compiler, if supported.
    pub(crate) warm: Option<Warm>,
    /// Files of the compile stage that the run stage gets.
    artefacts: Artefacts,
    /// Variables in this stage only.
    #[serde(default)]
    pub(crate) environment: Variables,
}

/// The run stage.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    pub(crate) command: Command,
    /// Whether the compiled program needs the toolchain at run time.
    #[serde(default = "yes")]
    pub(crate) toolchain: bool,
    /// How to start a warm runtime, if supported.
    pub(crate) warm: Option<Warm>,
    /// Variables in this stage only.
    #[serde(default)]
    pub(crate) environment: Variables,
}

/// A test program for the language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// Its code.
    pub code: String,
    /// Its expected output.
    pub expected: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHello {
    code: Option<String>,
    file: Option<FilePath>,
    expected: String,
}

/// An error in a recipe, with its location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {reason}", file.display(), line.map_or(String::new(), |line| format!(", line {line}")))]
pub struct RecipeError {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1, if known.
    pub line: Option<usize>,
    /// What is wrong.
    pub reason: String,
}

impl Recipe {
    /// Parses a recipe. `read_beside` reads a file next to it.
    pub(crate) fn parse(
        file: &Path,
        text: &str,
        read_beside: impl Fn(&str) -> Result<String, String>,
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
        recipe.resolve(&read_beside).map_err(|(placeholder, reason)| {
            mistake(text.find(&placeholder), format!("{placeholder}: {reason}"))
        })?;
        Ok(recipe)
    }

    /// Inserts files beside the recipe and resolves references to its other parts. An error names its placeholder.
    fn resolve(
        &mut self,
        read_beside: &impl Fn(&str) -> Result<String, String>,
    ) -> Result<(), (String, String)> {
        let layers: Vec<String> = self.layers.keys().cloned().collect();
        let name = self.name.0.clone();
        for text in self.texts() {
            text.resolve(read_beside, |layer| {
                let known = layers.iter().any(|known| known == layer);
                known.then(|| layer_place(&name, layer))
            })?;
        }
        Ok(())
    }

    /// Every text of the recipe that can contain placeholders.
    fn texts(&mut self) -> impl Iterator<Item = &mut Text> {
        let layers = self.layers.values_mut().map(|layer| &mut layer.command);
        let mut commands: Vec<&mut Command> = layers.collect();
        let mut variables: Vec<&mut Variables> = vec![&mut self.environment];
        let mut warm: Vec<&mut Warm> = self.run.warm.iter_mut().collect();
        if let Some(compile) = &mut self.compile {
            commands.push(&mut compile.command);
            variables.push(&mut compile.environment);
            warm.extend(&mut compile.warm);
        }
        commands.push(&mut self.run.command);
        variables.push(&mut self.run.environment);
        let arguments = commands.into_iter().flat_map(|command| &mut command.0);
        let arguments = arguments.filter_map(Argument::text_mut);
        let variables = variables.into_iter().flat_map(BTreeMap::values_mut);
        arguments.chain(variables).chain(warm.into_iter().flat_map(Warm::texts))
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

    /// Patterns of a project's entry file, the preferred one first.
    pub(crate) fn entries(&self) -> &[Glob] {
        &self.entries.0
    }

    pub(crate) fn hello(&self) -> &Hello {
        &self.resolved_hello
    }
}

impl Compile {
    /// Whether the command lists the source files, and so needs at least one.
    pub(crate) fn takes_sources(&self) -> bool {
        self.command.0.contains(&Argument::Sources)
    }

    pub(crate) fn artefacts(&self) -> &[Glob] {
        &self.artefacts.0
    }
}

fn yes() -> bool {
    true
}

fn line_of(text: &str, at: usize) -> usize {
    text.char_indices()
        .take_while(|(position, _)| *position < at)
        .filter(|(_, letter)| *letter == '\n')
        .count()
        + 1
}

/// Joins a multi-line message of the parser to one line.
fn one_line(error: &toml::de::Error) -> String {
    let lines: Vec<&str> = error.message().lines().map(str::trim).collect();
    lines.join(", ")
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
    fn a_recipe_is_parsed_completely() {
        let recipe = parse(GOOD).unwrap();
        assert_eq!(recipe.name(), "toy");
        assert_eq!(recipe.entry().as_str(), "main.toy");
        assert_eq!(recipe.hello().code, "hi");
        assert!(recipe.compile.unwrap().artefacts()[0].matches("out/x"));
    }

    #[test]
    fn an_error_names_file_line_and_reason() {
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
            ("\"{sources}\"", "\"{file:x.sh}\"", 9, "no x.sh here"),
            ("TOY = \"1\"", "TOY = \"{layer:std}\"", 14, "no layer of that name"),
            ("programs =", "least = \"new\"\nprograms =", 6, "not a version"),
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
