use std::error::Error;
use std::io;

use sandbox::{ExecuteError, with_causes};

/// Exit code of a command that a signal cancelled: what a shell reports for SIGINT.
pub(crate) const EXIT_CANCELLED: u8 = 130;

/// Why a command failed. [`Failure::exit_code`] is the only place that maps a failure to an exit code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The request is wrong; the user can correct it.
    #[error("{0}")]
    Usage(String),
    /// Internal error: `sandbox-run` or the host failed.
    #[error("{0}")]
    Internal(String),
    /// The reader of standard output closed the pipe. Prints no message, as other commands do on SIGPIPE.
    #[error("the reader of standard output closed the pipe")]
    BrokenPipe,
}

impl Failure {
    /// A wrong request, with the whole chain of causes.
    pub(crate) fn usage(error: &dyn Error) -> Self {
        Self::Usage(with_causes(error))
    }

    /// An internal error, with the whole chain of causes.
    pub(crate) fn internal(error: &dyn Error) -> Self {
        Self::Internal(with_causes(error))
    }

    /// A failure to write to standard output or standard error.
    pub(crate) fn printing(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::BrokenPipe
        } else {
            Self::Internal(format!("cannot write the result to standard output: {error}"))
        }
    }

    /// A failure to spawn a thread.
    pub(crate) fn thread(error: &io::Error) -> Self {
        Self::Internal(format!("cannot start a thread: {error}"))
    }

    /// The exit code of the command. A closed pipe gives the code a shell reports for SIGPIPE.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Internal(_) => 125,
            Self::BrokenPipe => 128 + 13,
        }
    }

    /// The line for standard error; `None` if nothing is printed.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::Usage(text) | Self::Internal(text) => {
                Some(format!("sandbox-run: {}", printable(text)))
            }
            Self::BrokenPipe => None,
        }
    }
}

/// Classifies an execution that ended without a report: internal error or wrong request.
impl From<ExecuteError> for Failure {
    fn from(error: ExecuteError) -> Self {
        match error {
            ExecuteError::Thread(_) | ExecuteError::ImageBackend(_) => Self::internal(&error),
            ExecuteError::Image(image) if image.is_internal() => Self::internal(&image),
            ExecuteError::Packages(packages) if packages.is_internal() => Self::internal(&packages),
            _ => Self::usage(&error),
        }
    }
}

/// One line without control characters, because quoted text may come from a hostile program or file.
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
    fn each_cause_is_printed_once() {
        let error = Outer(io::Error::other("inner"));
        assert_eq!(with_causes(&error), "outer: inner");
        assert_eq!(Failure::usage(&error).message().unwrap(), "sandbox-run: outer: inner");
    }

    #[test]
    fn a_message_is_one_line_that_a_terminal_can_show() {
        assert_eq!(printable("a\nb\u{1b}[2J\n"), "a b\\u{1b}[2J");
    }

    #[test]
    fn a_closed_pipe_prints_no_message() {
        let closed = Failure::printing(&io::ErrorKind::BrokenPipe.into());
        assert_eq!((closed.message(), closed.exit_code()), (None, 141));
        let full = Failure::printing(&io::ErrorKind::StorageFull.into());
        assert_eq!(full.exit_code(), 125);
    }
}
