use serde::Deserialize;

/// What the placeholders of one stage stand for.
#[derive(Debug)]
pub(crate) struct Values<'a> {
    /// The interpreter or compiler.
    pub(crate) program: &'a str,
    /// The file to begin with.
    pub(crate) entry: &'a str,
    /// Every file the compiler is to be given.
    pub(crate) sources: &'a [String],
    /// The memory limit of the stage, for toolchains that must be told.
    pub(crate) memory_mb: u64,
}

/// One argument of a recipe's command.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Argument {
    /// As many arguments as there are sources.
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
    Entry,
    MemoryMb,
}

impl Argument {
    /// Appends what this argument stands for.
    pub(crate) fn expand_into(&self, values: &Values<'_>, command: &mut Vec<String>) {
        match self {
            Self::Sources => command.extend_from_slice(values.sources),
            Self::Text(text) => command.push(text.expand(values)),
        }
    }

    /// Whether it names a program to start: a path, or the toolchain's own.
    pub(crate) fn can_be_started(&self) -> bool {
        match self {
            Self::Text(Text(pieces)) => match pieces.first() {
                Some(Piece::Program) => true,
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
                Piece::Entry => text.push_str(values.entry),
                Piece::MemoryMb => text.push_str(&values.memory_mb.to_string()),
            }
        }
        text
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

fn placeholder(text: &str) -> Result<Piece, String> {
    match text {
        "{program}" => Ok(Piece::Program),
        "{entry}" => Ok(Piece::Entry),
        "{memory_mb}" => Ok(Piece::MemoryMb),
        "{sources}" => Err("{sources} must be an argument by itself in a command".to_owned()),
        _ => Err(format!(
            "'{text}' is not a placeholder: they are {{program}}, {{entry}}, {{sources}} and \
             {{memory_mb}}; a brace itself is written twice"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str) -> Vec<String> {
        let values = Values {
            program: "/usr/bin/x",
            entry: "main.x",
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
        assert_eq!(expand("{program}:{entry}"), ["/usr/bin/x:main.x"]);
        assert_eq!(expand("plain"), ["plain"]);
        assert_eq!(expand(""), [""]);
    }

    #[test]
    fn sources_become_as_many_arguments_as_there_are() {
        assert_eq!(expand("{sources}"), ["a.x", "b.x"]);
    }

    #[test]
    fn a_doubled_brace_is_a_brace() {
        assert_eq!(expand("{{print}} {{{entry}}}"), ["{print} {main.x}"]);
    }

    #[test]
    fn unknown_and_misplaced_placeholders_are_refused() {
        for text in ["{progam}", "{", "}", "x{entry", "a{sources}", "{}", "a\0b"] {
            assert!(Argument::try_from(text.to_owned()).is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn only_a_path_or_the_toolchain_can_be_started() {
        let can = |text: &str| Argument::try_from(text.to_owned()).unwrap().can_be_started();
        assert!(can("{program}") && can("./program") && can("/usr/bin/x"));
        assert!(!can("program") && !can("{sources}") && !can("{entry}") && !can(""));
    }
}
