//! Looks up files that most programs open when they start: the dynamic loader's, and the locale's.
//!
//! The first lookup of a file in a sandbox creates its inode in the private root (`private_root`),
//! which takes about 4 µs. Here that happens while the sandbox waits for a program.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, open, statx};

/// Some exist on a few systems only. That a file does not exist is remembered as well.
const FILES: &[&str] = &["/bin", "/usr/bin", "/etc/ld.so.cache", "/etc/ld.so.preload"];

/// Where distributions have shared libraries.
const LIBRARY_DIRECTORIES: &[&str] = if cfg!(target_arch = "aarch64") {
    &["/lib/aarch64-linux-gnu", "/lib64"]
} else {
    &["/lib/x86_64-linux-gnu", "/lib64"]
};
const LIBRARIES: &[&str] = &[
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "libtinfo.so.6",
    "gconv/gconv-modules.cache",
];

/// The locale that sandboxes have (`LANG=C.UTF-8`), by the names that the C library tries.
const LOCALE_DIRECTORIES: &[&str] = &["/usr/lib/locale/C.UTF-8", "/usr/lib/locale/C.utf8"];
const LOCALE_FILES: &[&str] = &[
    "LC_ADDRESS",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES/SYS_LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
];
const OTHER_LOCALE_FILES: &[&str] =
    &["/usr/lib/locale/locale-archive", "/usr/share/locale/locale.alias"];

/// Looks all of them up. Every path is in read-only directories; failure has no effect.
pub(super) fn look_up() {
    let look_up = |directory: BorrowedFd<'_>, path: &str| {
        let _ = statx(directory, path, AtFlags::empty(), StatxFlags::TYPE);
    };
    for path in FILES.iter().chain(OTHER_LOCALE_FILES) {
        look_up(CWD, path);
    }
    let libraries = LIBRARY_DIRECTORIES.iter().map(|directory| (directory, LIBRARIES));
    let locale = LOCALE_DIRECTORIES.iter().map(|directory| (directory, LOCALE_FILES));
    for (directory, files) in libraries.chain(locale) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(directory) = open(*directory, flags, Mode::empty()) else { continue };
        for file in files {
            look_up(directory.as_fd(), file);
        }
    }
}
