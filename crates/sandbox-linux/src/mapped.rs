//! A file that is read through a mapping.
//!
//! Exec requests arrive as memory files. Reading one would copy it into memory that counts against
//! the sandbox; a mapping leaves the pages charged to the supervisor.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{SealFlags, fcntl_get_seals, fstat};
use rustix::io::Errno;

/// The bytes of a sealed memory file.
pub(crate) struct MappedFile {
    address: *const u8,
    length: usize,
}

impl MappedFile {
    /// Maps the whole file. It must be sealed, so that its content cannot change.
    pub(crate) fn new(file: BorrowedFd<'_>) -> Result<Self, Errno> {
        if !fcntl_get_seals(file)?.contains(SealFlags::SHRINK | SealFlags::WRITE) {
            return Err(Errno::PERM);
        }
        let length = usize::try_from(fstat(file)?.st_size).map_err(|_| Errno::FBIG)?;
        if length == 0 {
            return Ok(Self { address: std::ptr::NonNull::dangling().as_ptr(), length });
        }
        // SAFETY: a fresh private mapping at an address of the kernel's choice touches no other one.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(Errno::NOMEM);
        }
        Ok(Self { address: address.cast(), length })
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is this long, readable, lives until drop, and the seals checked above
        // keep its file from shrinking or changing; for length 0 the pointer is dangling but aligned.
        unsafe { std::slice::from_raw_parts(self.address, self.length) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: this is the mapping made in `new`, and nothing borrowed from it outlives `self`.
            unsafe { libc::munmap(self.address.cast_mut().cast(), self.length) };
        }
    }
}
