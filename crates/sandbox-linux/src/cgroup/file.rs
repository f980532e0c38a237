//! Control files: opened relative to a directory descriptor, read and written at offset 0.
//!
//! Every error names the operation and the path: "Device or resource busy" alone is misleading.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::CgroupError;
use super::parse;

/// A cgroup directory, held by an `O_PATH` descriptor so that it cannot be swapped for another.
#[derive(Debug)]
pub(crate) struct Directory {
    descriptor: OwnedFd,
    /// Only for messages and for descriptions.
    path: PathBuf,
}

const DIRECTORY_FLAGS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Directory {
    pub(crate) fn open(path: &Path) -> Result<Directory, CgroupError> {
        let descriptor = rustix::fs::openat(CWD, path, DIRECTORY_FLAGS, Mode::empty())
            .map_err(|errno| CgroupError::file("open the cgroup", path, errno))?;
        Ok(Directory { descriptor, path: path.to_owned() })
    }

    pub(crate) fn open_child(&self, name: &str) -> Result<Directory, CgroupError> {
        let path = self.path.join(name);
        match rustix::fs::openat(&self.descriptor, name, DIRECTORY_FLAGS, Mode::empty()) {
            Ok(descriptor) => Ok(Directory { descriptor, path }),
            Err(errno) => Err(CgroupError::file("open the cgroup", path, errno)),
        }
    }

    pub(crate) fn make_child(&self, name: &str) -> Result<Directory, CgroupError> {
        rustix::fs::mkdirat(&self.descriptor, name, Mode::from_raw_mode(0o755))
            .map_err(|errno| CgroupError::file("make the cgroup", self.path.join(name), errno))?;
        self.open_child(name).inspect_err(|_| {
            // The error of the open is reported; what it leaves is swept later.
            let _ = self.remove_child(name);
        })
    }

    pub(crate) fn remove_child(&self, name: &str) -> Result<(), CgroupError> {
        rustix::fs::unlinkat(&self.descriptor, name, AtFlags::REMOVEDIR)
            .map_err(|errno| CgroupError::file("remove the cgroup", self.path.join(name), errno))
    }

    /// The names of the cgroups below this one.
    pub(crate) fn children(&self) -> Result<Vec<String>, CgroupError> {
        let fail = |errno| CgroupError::file("list the cgroups in", &self.path, errno);
        // An O_PATH descriptor cannot be listed.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listing = rustix::fs::openat(&self.descriptor, ".", flags, Mode::empty())
            .and_then(Dir::new)
            .map_err(fail)?;
        let mut names = Vec::new();
        for entry in listing {
            let entry = entry.map_err(fail)?;
            // Names that are not text were not created here.
            if let (FileType::Directory, Ok(name)) = (entry.file_type(), entry.file_name().to_str())
                && name != "."
                && name != ".."
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        rustix::fs::statat(&self.descriptor, file, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    pub(crate) fn open_file(&self, file: &str, access: OFlags) -> Result<ControlFile, CgroupError> {
        let flags = access | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.descriptor, file, flags, Mode::empty()) {
            Ok(descriptor) => Ok(ControlFile { descriptor, path: self.path.join(file) }),
            Err(errno) => Err(CgroupError::file("open", self.path.join(file), errno)),
        }
    }

    pub(crate) fn read(&self, file: &str) -> Result<String, CgroupError> {
        self.open_file(file, OFlags::RDONLY)?.read()
    }

    pub(crate) fn read_number(&self, file: &str) -> Result<u64, CgroupError> {
        self.open_file(file, OFlags::RDONLY)?.read_number()
    }

    pub(crate) fn write(&self, file: &str, text: &str) -> Result<(), CgroupError> {
        self.open_file(file, OFlags::WRONLY)?.write(text)
    }

    /// The members. The file is opened anew each time: v1 answers a second read of one descriptor
    /// from a list that is up to a second old.
    pub(crate) fn processes(&self) -> Result<Vec<u32>, CgroupError> {
        self.members("cgroup.procs")
    }

    /// The members that a file lists: processes or threads.
    pub(crate) fn members(&self, file: &str) -> Result<Vec<u32>, CgroupError> {
        let text = self.read(file)?;
        parse::processes(&text).ok_or_else(|| CgroupError::Malformed {
            path: self.path.join(file),
            text,
            expected: "a list of process ids",
        })
    }

    pub(crate) fn duplicate(&self) -> Result<OwnedFd, CgroupError> {
        self.descriptor.try_clone().map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::MFILE);
            CgroupError::file("duplicate the descriptor of", &self.path, errno)
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// One open control file.
#[derive(Debug)]
pub(crate) struct ControlFile {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl ControlFile {
    /// The whole text. Reading at an offset makes the kernel produce the file afresh at offset 0,
    /// so one descriptor serves for any number of readings.
    pub(crate) fn read(&self) -> Result<String, CgroupError> {
        let mut bytes = Vec::new();
        let mut buffer = [0_u8; 4096];
        loop {
            let count = rustix::io::pread(&self.descriptor, &mut buffer, bytes.len() as u64)
                .map_err(|errno| CgroupError::file("read", &self.path, errno))?;
            if count == 0 {
                break;
            }
            bytes.extend_from_slice(&buffer[..count]);
        }
        String::from_utf8(bytes).map_err(|error| CgroupError::Malformed {
            path: self.path.clone(),
            text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
            expected: "text",
        })
    }

    /// A file that holds one number, by a single system call.
    pub(crate) fn read_number(&self) -> Result<u64, CgroupError> {
        self.read_short(parse::number, "a number")
    }

    /// A file known to fit in one page, by a single system call and without allocating.
    pub(crate) fn read_short<T>(
        &self,
        parse: impl FnOnce(&str) -> Option<T>,
        expected: &'static str,
    ) -> Result<T, CgroupError> {
        let mut buffer = [0_u8; 4096];
        let count = rustix::io::pread(&self.descriptor, &mut buffer, 0)
            .map_err(|errno| CgroupError::file("read", &self.path, errno))?;
        let text = &buffer[..count];
        str::from_utf8(text).ok().and_then(parse).ok_or_else(|| CgroupError::Malformed {
            path: self.path.clone(),
            text: String::from_utf8_lossy(text).into_owned(),
            expected,
        })
    }

    pub(crate) fn write(&self, text: &str) -> Result<(), CgroupError> {
        // Control files take a value in one write or not at all, so there is no short write.
        match rustix::io::pwrite(&self.descriptor, text.as_bytes(), 0) {
            Ok(_) => Ok(()),
            Err(errno) => Err(CgroupError::file(format!("write {text} to"), &self.path, errno)),
        }
    }

    pub(crate) fn into_descriptor(self) -> OwnedFd {
        self.descriptor
    }
}

/// A control file that can be closed for a while.
#[derive(Debug)]
pub(crate) struct ReopenableFile {
    directory: Arc<Directory>,
    name: &'static str,
    access: OFlags,
    file: Mutex<Option<ControlFile>>,
}

impl ReopenableFile {
    pub(crate) fn open(
        directory: &Arc<Directory>,
        name: &'static str,
        access: OFlags,
    ) -> Result<ReopenableFile, CgroupError> {
        let file = Mutex::new(Some(directory.open_file(name, access)?));
        Ok(ReopenableFile { directory: Arc::clone(directory), name, access, file })
    }

    pub(crate) fn close(&self) {
        *self.lock() = None;
    }

    /// Runs a closure with the open file.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&ControlFile) -> Result<T, CgroupError>,
    ) -> Result<T, CgroupError> {
        match &mut *self.lock() {
            Some(file) => work(file),
            closed => work(closed.insert(self.directory.open_file(self.name, self.access)?)),
        }
    }

    pub(crate) fn read_number(&self) -> Result<u64, CgroupError> {
        self.with(ControlFile::read_number)
    }

    pub(crate) fn write(&self, text: &str) -> Result<(), CgroupError> {
        self.with(|file| file.write(text))
    }

    fn lock(&self) -> MutexGuard<'_, Option<ControlFile>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for ControlFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Directory) {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        (folder, directory)
    }

    #[test]
    fn an_error_names_the_verb_and_the_path() {
        let (folder, directory) = folder();
        let error = directory.write("memory.max", "1").unwrap_err();
        let path = folder.path().join("memory.max");
        assert_eq!(error.to_string(), format!("cannot open {}", path.display()));
        assert_eq!(error.errno(), Some(Errno::NOENT));
    }

    #[test]
    fn a_file_longer_than_a_page_is_read_whole() {
        let (folder, directory) = folder();
        let expected: Vec<u32> = (1..5000).collect();
        let text = expected.iter().map(u32::to_string).collect::<Vec<_>>().join("\n");
        std::fs::write(folder.path().join("cgroup.procs"), text).unwrap();
        assert_eq!(directory.processes().unwrap(), expected);
    }

    #[test]
    fn one_descriptor_sees_the_file_change() {
        let (folder, directory) = folder();
        let path = folder.path().join("cpuacct.usage");
        std::fs::write(&path, "7\n").unwrap();
        let file = directory.open_file("cpuacct.usage", OFlags::RDONLY).unwrap();
        assert_eq!(file.read_number().unwrap(), 7);
        std::fs::write(&path, "8\n").unwrap();
        assert_eq!(file.read_number().unwrap(), 8);
        std::fs::write(&path, "many\n").unwrap();
        assert!(file.read_number().unwrap_err().to_string().contains("\"many\\n\""));
    }

    #[test]
    fn a_file_that_was_closed_is_opened_again_when_it_is_needed() {
        let (folder, directory) = folder();
        std::fs::write(folder.path().join("pids.current"), "7\n").unwrap();
        let directory = Arc::new(directory);
        let file = ReopenableFile::open(&directory, "pids.current", OFlags::RDONLY).unwrap();
        file.close();
        assert!(file.lock().is_none());
        assert_eq!(file.read_number().unwrap(), 7);
        assert!(file.lock().is_some());
    }

    #[test]
    fn a_link_is_not_followed() {
        let (folder, directory) = folder();
        std::os::unix::fs::symlink("/proc/self/status", folder.path().join("pids.max")).unwrap();
        assert_eq!(directory.read("pids.max").unwrap_err().errno(), Some(Errno::LOOP));
    }

    #[test]
    fn children_are_directories_only() {
        let (folder, directory) = folder();
        std::fs::write(folder.path().join("tasks"), "").unwrap();
        directory.make_child("below").unwrap();
        assert_eq!(directory.children().unwrap(), ["below"]);
        directory.remove_child("below").unwrap();
        assert!(directory.children().unwrap().is_empty());
    }
}
