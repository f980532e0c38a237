//! Reading tar archives that strangers wrote. Nothing here writes a file.

mod decompress;
mod entries;
mod extensions;
mod path;
mod zstd;

pub(crate) use decompress::decompress;
pub(crate) use entries::{Header, Kind, for_each};
pub(crate) use path::{plain, printable};
