//! The order, as it comes.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::denied::Answers;
use crate::frame::Unpacker;
use crate::landlock::Rules;
use crate::system::Program;
use crate::user::User;
use crate::work::WORK;

/// A program and everything it needs.
pub(crate) struct Order {
    argv: Vec<CString>,
    env: Vec<CString>,
    pub(crate) directory: String,
    pub(crate) files: Vec<PlacedFile>,
    /// Trees that the program may write to: where they are shown, and where the program looks for them.
    pub(crate) copies: Vec<(PathBuf, PathBuf)>,
    rlimits: Vec<(u64, u64)>,
    filter: Vec<u8>,
    /// None if the filter itself answers.
    answers: Option<Answers>,
    /// Whose the program is.
    pub(crate) user: User,
    /// Which version of Landlock the rules are for; 0 for no rules.
    landlock: u64,
    /// Other places that the program may write to.
    writable: Vec<PathBuf>,
}

/// A file that is there at the start.
pub(crate) struct PlacedFile {
    pub(crate) path: String,
    pub(crate) executable: bool,
    pub(crate) contents: Vec<u8>,
}

impl Order {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut unpacker = Unpacker(bytes);
        let text = |unpacker: &mut Unpacker<'_>| CString::new(unpacker.bytes()?).ok();
        let path =
            |unpacker: &mut Unpacker<'_>| Some(PathBuf::from(OsStr::from_bytes(unpacker.bytes()?)));
        Some(Self {
            argv: unpacker.list(text)?,
            env: unpacker.list(text)?,
            directory: String::from_utf8(unpacker.bytes()?.to_vec()).ok()?,
            files: unpacker.list(|unpacker| {
                Some(PlacedFile {
                    path: String::from_utf8(unpacker.bytes()?.to_vec()).ok()?,
                    executable: unpacker.number()? != 0,
                    contents: unpacker.bytes()?.to_vec(),
                })
            })?,
            copies: unpacker.list(|unpacker| Some((path(unpacker)?, path(unpacker)?)))?,
            rlimits: unpacker.list(|unpacker| Some((unpacker.number()?, unpacker.number()?)))?,
            filter: unpacker.bytes()?.to_vec(),
            answers: match unpacker.bytes()? {
                [] => None,
                answers => Some(Answers::read(answers)?),
            },
            user: User(Some(u32::try_from(unpacker.number()?).ok()?).filter(|id| *id != 0)),
            landlock: unpacker.number()?,
            writable: unpacker.list(path)?,
        })
    }

    /// The program, and how its denied calls are answered, unless its filter does that.
    pub(crate) fn into_program(self) -> io::Result<(Program, Option<Answers>)> {
        let copies = self.copies.iter().map(|(_, to)| to);
        let writable = copies.chain(&self.writable).map(PathBuf::as_path);
        let rules = match self.landlock {
            0 => None,
            version => Some(Rules::new(version, writable)?),
        };
        let path = self.argv.first().cloned().unwrap_or_default();
        let directory = match self.directory.as_str() {
            "" => WORK.to_owned(),
            below => format!("{WORK}/{below}"),
        };
        let program = Program {
            path,
            argv: self.argv,
            env: self.env,
            // It was text without zero bytes when its directories were made.
            directory: CString::new(directory).unwrap_or_default(),
            rlimits: self.rlimits,
            filter: self.filter,
            has_listener: self.answers.is_some(),
            user: self.user,
            rules,
        };
        Ok((program, self.answers))
    }
}
