//! The background: the scheduling class of a cgroup that gets the CPU time that nothing else wants.
//!
//! The kernel calls it `cpu.idle` (Linux 5.15). A process that wakes up outside the cgroup takes the CPU
//! from it at once, where a mere weight lets it finish its time slice. Cgroups in the background share
//! equally what they get.

use rustix::io::Errno;

use super::CgroupError;
use super::file::Directory;

/// Puts a cgroup into the background, or back. No effect on a kernel that has no such class, or
/// without the CPU controller: cgroups then have equal weights.
pub(super) fn set(directory: &Directory, is_background: bool) -> Result<(), CgroupError> {
    match directory.write("cpu.idle", if is_background { "1" } else { "0" }) {
        Err(error) if error.errno() == Some(Errno::NOENT) => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_the_class_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        set(&directory, true).unwrap();
        let file = folder.path().join("cpu.idle");
        assert!(!file.exists());
        std::fs::write(&file, "0").unwrap();
        set(&directory, true).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "1");
        set(&directory, false).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "0");
    }
}
