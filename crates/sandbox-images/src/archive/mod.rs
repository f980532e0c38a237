//! Reads untrusted tar archives. Nothing here writes a file.

mod decompress;
mod entries;
mod extensions;
mod path;
mod zstd;

pub(crate) use decompress::decompress;
pub(crate) use entries::{Header, Kind, for_each_entry};
pub(crate) use path::{parse_path, printable};
