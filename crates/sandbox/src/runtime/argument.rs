use serde::Deserialize;

/// Values of the placeholders of one stage.
#[derive(Debug)]
pub(crate) struct Values<'a> {
    /// The interpreter or compiler.
    pub(crate) program: &'a str,
    /// The root directory of the toolchain, which contains `bin`.
    pub(crate) root: &'a str,
    /// The entry file.
    pub(crate) entry: &'a str,
    /// The source files.
    pub(crate) sources: &'a [String],
    /// The memory limit of the stage, for toolchains that need it as an option.
    pub(crate) memory_mb: u64,
}

/// One argument of a recipe's command.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Argument {
    /// One argument for each source file.
    Sources,
    /// One argument.
    Text(Text),
}

/// Text with placeholders, checked when it is read so that expanding it cannot fail.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Text(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Program,
    Root,
    Entry,
    /// The entry's file name without its extension.
    Stem,
    MemoryMb,
    /// Nine tenths of the memory limit: a heap limit that makes a garbage collector work harder before the memory limit
    /// is reached.
    HeapMb,
    /// The text of a file beside the recipe; replaced when the recipe is read.
    File(String),
    /// Where a layer is shown; replaced when the recipe is read.
    Layer(String),
}

impl Argument {
    /// Appends the expanded arguments.
    pub(crate) fn expand_into(&self, values: &Values<'_>, command: &mut Vec<String>) {
        match self {
            Self::Sources => command.extend_from_slice(values.sources),
            Self::Text(text) => command.push(text.expand(values)),
        }
    }

    /// The text, if it is one argument.
    pub(crate) fn text_mut(&mut self) -> Option<&mut Text> {
        match self {
            Self::Sources => None,
            Self::Text(text) => Some(text),
        }
    }

    /// Whether it names a program to start: a path, or one of the toolchain's own.
    pub(crate) fn can_be_started(&self) -> bool {
        match self {
            Self::Text(Text(pieces)) => match pieces.first() {
                Some(Piece::Program | Piece::Root) => true,
                Some(Piece::Literal(text)) => text.starts_with('/') || text.starts_with("./"),
                _ => false,
            },
            Self::Sources => false,
        }
    }
}

impl Text {
    /// The text with every placeholder replaced.
    pub(crate) fn expand(&self, values: &Values<'_>) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Program => text.push_str(values.program),
                Piece::Root => text.push_str(values.root),
                Piece::Entry => text.push_str(values.entry),
                Piece::Stem => text.push_str(stem(values.entry)),
                Piece::MemoryMb => text.push_str(&values.memory_mb.to_string()),
                Piece::HeapMb => text.push_str(&(values.memory_mb * 9 / 10).to_string()),
                Piece::File(_) | Piece::Layer(_) => {
                    unreachable!("a recipe is used only after these were replaced")
                }
            }
        }
        text
    }

    /// Replaces references to other files and to layers of the recipe. An error names its placeholder.
    pub(crate) fn resolve(
        &mut self,
        read_beside: impl Fn(&str) -> Result<String, String>,
        layer_mount_point: impl Fn(&str) -> Option<String>,
    ) -> Result<(), (String, String)> {
        for piece in &mut self.0 {
            let literal = match piece {
                Piece::File(name) => {
                    read_beside(name).map_err(|reason| (format!("{{file:{name}}}"), reason))?
                }
                Piece::Layer(name) => layer_mount_point(name).ok_or_else(|| {
                    let reason = "the recipe has no layer of that name".to_owned();
                    (format!("{{layer:{name}}}"), reason)
                })?,
                _ => continue,
            };
            *piece = Piece::Literal(literal);
        }
        Ok(())
    }
}

impl TryFrom<String> for Argument {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text == "{sources}" {
            return Ok(Self::Sources);
        }
        text.try_into().map(Self::Text)
    }
}

impl TryFrom<String> for Text {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.contains('\0') {
            return Err("it contains a zero byte".to_owned());
        }
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
                literal.push_str(&rest[..1]);
                rest = after;
                continue;
            }
            let end = rest.find('}').map_or(rest.len(), |end| end + 1);
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(placeholder(&rest[..end])?);
            rest = &rest[end..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self(pieces))
    }
}

/// `src/Main.java` without its directories and its extension.
fn stem(entry: &str) -> &str {
    let name = entry.rsplit('/').next().unwrap_or(entry);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

fn placeholder(text: &str) -> Result<Piece, String> {
    let named = |kind: &str| {
        let name = text.strip_prefix(kind)?.strip_suffix('}')?;
        (!name.is_empty() && !name.contains(['/', '{'])).then(|| name.to_owned())
    };
    if let Some(name) = named("{file:") {
        return Ok(Piece::File(name));
    }
    if let Some(name) = named("{layer:") {
        return Ok(Piece::Layer(name));
    }
    match text {
        "{program}" => Ok(Piece::Program),
        "{root}" => Ok(Piece::Root),
        "{entry}" => Ok(Piece::Entry),
        "{stem}" => Ok(Piece::Stem),
        "{memory_mb}" => Ok(Piece::MemoryMb),
        "{heap_mb}" => Ok(Piece::HeapMb),
        "{sources}" => Err("{sources} must be an argument by itself in a command".to_owned()),
        _ => Err(format!(
            "'{text}' is not a placeholder: they are {{program}}, {{root}}, {{entry}}, {{stem}}, \
             {{sources}}, {{memory_mb}}, {{heap_mb}}, {{file:NAME}} and {{layer:NAME}}; a brace \
             itself is written twice"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str) -> Vec<String> {
        let values = Values {
            program: "/usr/bin/x",
            root: "/usr",
            entry: "src/main.x",
            sources: &["a.x".to_owned(), "b.x".to_owned()],
            memory_mb: 64,
        };
        let mut command = Vec::new();
        Argument::try_from(text.to_owned()).unwrap().expand_into(&values, &mut command);
        command
    }

    #[test]
    fn placeholders_are_replaced_where_they_stand() {
        assert_eq!(expand("-Xmx{memory_mb}m"), ["-Xmx64m"]);
        assert_eq!(expand("{program}:{entry}"), ["/usr/bin/x:src/main.x"]);
        assert_eq!(expand("{root}/lib {stem} {heap_mb}"), ["/usr/lib main 57"]);
        assert_eq!(expand("plain"), ["plain"]);
        assert_eq!(expand(""), [""]);
    }

    #[test]
    fn sources_expand_to_one_argument_each() {
        assert_eq!(expand("{sources}"), ["a.x", "b.x"]);
    }

    #[test]
    fn a_doubled_brace_is_a_brace() {
        assert_eq!(expand("{{print}} {{{entry}}}"), ["{print} {src/main.x}"]);
    }

    #[test]
    fn files_and_layers_are_resolved_when_the_recipe_is_parsed() {
        let resolve = |text: &str| {
            let mut text = Text::try_from(text.to_owned()).unwrap();
            let read = |name: &str| Err(format!("no {name}"));
            text.resolve(read, |layer| (layer == "std").then(|| "/opt/std".to_owned()))?;
            Ok::<_, (String, String)>(text)
        };
        assert_eq!(
            resolve("{layer:std}/x").unwrap().0,
            [Piece::Literal("/opt/std".into()), Piece::Literal("/x".into())]
        );
        assert_eq!(resolve("{file:a.sh}").unwrap_err(), ("{file:a.sh}".into(), "no a.sh".into()));
        assert_eq!(resolve("{layer:x}").unwrap_err().0, "{layer:x}");
    }

    #[test]
    fn unknown_and_misplaced_placeholders_are_refused() {
        for text in
            ["{progam}", "{", "}", "x{entry", "a{sources}", "{}", "{file:}", "{file:a/b}", "a\0b"]
        {
            assert!(Argument::try_from(text.to_owned()).is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn only_a_path_or_the_toolchain_can_be_started() {
        let can = |text: &str| Argument::try_from(text.to_owned()).unwrap().can_be_started();
        assert!(can("{program}") && can("{root}/bin/x"));
        assert!(can("./program") && can("/usr/bin/x"));
        assert!(!can("program") && !can("{sources}") && !can("{entry}") && !can(""));
    }
}
