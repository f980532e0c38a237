use std::error::Error;
use std::io;

use sandbox::with_causes;

/// Why there is no exit code of a program to pass on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The request is wrong, and the person who typed it can put it right.
    #[error("{0}")]
    Usage(String),
    /// Our own failure.
    #[error("{0}")]
    Ours(String),
    /// Nobody reads what we print any more: no reason to complain.
    #[error("the reader of our output has gone")]
    NobodyReads,
}

impl Failure {
    /// A wrong request, told by the whole chain of causes.
    pub(crate) fn usage(error: &dyn Error) -> Self {
        Self::Usage(with_causes(error))
    }

    /// Our own failure, told by the whole chain of causes.
    pub(crate) fn ours(error: &dyn Error) -> Self {
        Self::Ours(with_causes(error))
    }

    /// A failure to print.
    pub(crate) fn printing(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::NobodyReads
        } else {
            Self::Ours(format!("cannot print the result: {error}"))
        }
    }

    /// The exit code of the command. A reader that has gone is what SIGPIPE would have told.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Ours(_) => 125,
            Self::NobodyReads => 128 + 13,
        }
    }

    /// The line for standard error, if there is anything to say.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::Usage(text) | Self::Ours(text) => {
                Some(format!("sandbox-run: {}", printable(text)))
            }
            Self::NobodyReads => None,
        }
    }
}

/// One line without control characters: what is quoted may come from a hostile program or file.
pub(crate) fn printable(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.trim_end().chars() {
        match letter {
            '\n' | '\t' => line.push(' '),
            letter if letter.is_control() => line.extend(letter.escape_default()),
            letter => line.push(letter),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] io::Error);

    #[test]
    fn causes_are_told_once_each() {
        let error = Outer(io::Error::other("inner"));
        assert_eq!(with_causes(&error), "outer: inner");
        assert_eq!(Failure::usage(&error).message().unwrap(), "sandbox-run: outer: inner");
    }

    #[test]
    fn a_message_is_one_line_that_a_terminal_can_show() {
        assert_eq!(printable("a\nb\u{1b}[2J\n"), "a b\\u{1b}[2J");
    }

    #[test]
    fn a_closed_pipe_is_no_failure_to_talk_about() {
        let closed = Failure::printing(&io::ErrorKind::BrokenPipe.into());
        assert_eq!((closed.message(), closed.exit_code()), (None, 141));
        let full = Failure::printing(&io::ErrorKind::StorageFull.into());
        assert_eq!(full.exit_code(), 125);
    }
}
