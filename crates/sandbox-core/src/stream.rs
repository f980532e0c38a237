use std::fmt;
use std::io::Read;
use std::sync::Mutex;

/// The program's standard input.
#[derive(Default)]
pub enum Stdin {
    /// Empty: end of file at once.
    #[default]
    Empty,
    /// These bytes.
    Bytes(Vec<u8>),
    /// The bytes that this reader returns, as it returns them. It can be taken once.
    Reader(Mutex<Option<Box<dyn Read + Send>>>),
}

/// One of the two streams a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stdin {
    /// Standard input from a reader, which is read while the program runs.
    pub fn from_reader(reader: impl Read + Send + 'static) -> Self {
        Self::Reader(Mutex::new(Some(Box::new(reader))))
    }
}

impl From<Vec<u8>> for Stdin {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.is_empty() { Self::Empty } else { Self::Bytes(bytes) }
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Reader(_) => f.write_str("Reader"),
        }
    }
}

impl From<&str> for Stdin {
    fn from(text: &str) -> Self {
        text.as_bytes().to_vec().into()
    }
}
