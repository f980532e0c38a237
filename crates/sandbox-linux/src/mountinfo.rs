//! The mounts that a process sees.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// One line of a `mountinfo` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Device number of its file system: mounts with the same number show the same inodes.
    pub(crate) device: Vec<u8>,
    /// The mount point.
    pub(crate) point: PathBuf,
}

/// The mounts of a `mountinfo` file, in its order: a mount comes after the one it is on.
pub(crate) fn parse(text: &[u8]) -> Vec<Mount> {
    let mount = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ').skip(2);
        let device = fields.next()?.to_vec();
        let point = unescape(fields.nth(1)?);
        Some(Mount { device, point })
    };
    text.split(|byte| *byte == b'\n').filter_map(mount).collect()
}

/// The mounts of this process.
pub(crate) fn own() -> io::Result<Vec<Mount>> {
    Ok(parse(&std::fs::read("/proc/self/mountinfo")?))
}

/// Mount points below these host directories that are not directories: an overlay over a directory
/// does not cover them.
pub fn files_below<'a>(directories: impl Iterator<Item = &'a Path>) -> io::Result<Vec<PathBuf>> {
    let directories: Vec<PathBuf> =
        directories.filter_map(|directory| directory.canonicalize().ok()).collect();
    let mounts = own()?.into_iter().map(|mount| mount.point);
    let below = mounts.filter(|point| directories.iter().any(|above| point.starts_with(above)));
    Ok(below.filter(|point| is_file(point)).collect())
}

/// Whether a path exists that is not a directory. A path that another mount hides does not.
pub(crate) fn is_file(point: &Path) -> bool {
    point.symlink_metadata().is_ok_and(|found| !found.is_dir())
}

/// Unescapes a path: spaces and the like are written as a backslash and three octal digits.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        rest = if byte.is_some() { &after[3..] } else { after };
        bytes.push(byte.unwrap_or(*first));
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_with_the_odd_characters_of_their_places() {
        let text =
            b"22 1 0:20 / / ro - tmpfs none rw\n23 22 0:21 /x /a\\040b\\134 ro - ext4 d rw\n";
        let mount =
            |device: &[u8], point: &str| Mount { device: device.into(), point: point.into() };
        assert_eq!(parse(text), [mount(b"0:20", "/"), mount(b"0:21", "/a b\\")]);
        assert_eq!(unescape(b"/end\\04"), Path::new("/end\\04"));
    }
}
