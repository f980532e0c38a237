//! Writes tar archives byte by byte, so that tests can create malformed ones.

/// An unfinished archive.
#[derive(Clone, Default)]
pub(crate) struct Tar(Vec<u8>);

pub(crate) const FILE: u8 = b'0';
pub(crate) const HARD_LINK: u8 = b'1';
pub(crate) const SYMLINK: u8 = b'2';
pub(crate) const CHARACTER_DEVICE: u8 = b'3';
pub(crate) const BLOCK_DEVICE: u8 = b'4';
pub(crate) const DIRECTORY: u8 = b'5';
pub(crate) const FIFO: u8 = b'6';
pub(crate) const PAX: u8 = b'x';
pub(crate) const GNU_NAME: u8 = b'L';
pub(crate) const GNU_LINK: u8 = b'K';
pub(crate) const SPARSE: u8 = b'S';

/// A header, which tests can modify before they add it.
#[derive(Clone)]
pub(crate) struct Head([u8; 512]);

impl Head {
    pub(crate) fn new(kind: u8, path: &[u8], size: u64) -> Self {
        let mut head = Self([0; 512]);
        head.0[156] = kind;
        head.0[257..265].copy_from_slice(b"ustar\x0000");
        head.bytes(0, &path[..path.len().min(100)])
            .octal(100, 0o644)
            .octal(108, 0)
            .octal(116, 0)
            .wide(124, size)
            .wide(136, 1_600_000_000)
            .octal(329, 0)
            .octal(337, 0)
    }

    pub(crate) fn mode(self, mode: u32) -> Self {
        self.octal(100, mode)
    }

    pub(crate) fn target(self, target: &[u8]) -> Self {
        self.bytes(157, target)
    }

    pub(crate) fn device(self, major: u32, minor: u32) -> Self {
        self.octal(329, major).octal(337, minor)
    }

    pub(crate) fn bytes(mut self, at: usize, bytes: &[u8]) -> Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    fn octal(self, at: usize, number: u32) -> Self {
        self.bytes(at, format!("{number:07o}\0").as_bytes())
    }

    fn wide(self, at: usize, number: u64) -> Self {
        self.bytes(at, format!("{number:011o}\0").as_bytes())
    }

    fn sealed(self) -> [u8; 512] {
        let mut head = self.bytes(148, b"        ").0;
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        head
    }
}

impl Tar {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a header and the content behind it.
    pub(crate) fn entry(mut self, head: Head, content: &[u8]) -> Self {
        self.0.extend(head.sealed());
        self.0.extend(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(crate) fn file(self, path: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Self {
        let content = content.as_ref();
        self.entry(Head::new(FILE, path.as_ref(), content.len() as u64), content)
    }

    pub(crate) fn directory(self, path: impl AsRef<[u8]>) -> Self {
        self.entry(Head::new(DIRECTORY, path.as_ref(), 0).mode(0o755), b"")
    }

    pub(crate) fn symlink(self, path: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Self {
        self.link(SYMLINK, path.as_ref(), target.as_ref())
    }

    pub(crate) fn hard_link(self, path: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Self {
        self.link(HARD_LINK, path.as_ref(), target.as_ref())
    }

    fn link(self, kind: u8, path: &[u8], target: &[u8]) -> Self {
        if target.len() <= 100 {
            return self.entry(Head::new(kind, path, 0).target(target), b"");
        }
        let long = self.pax(&[("linkpath", target)]);
        long.entry(Head::new(kind, path, 0), b"")
    }

    /// Adds a POSIX (pax) extension header for the next entry.
    pub(crate) fn pax(self, records: &[(&str, &[u8])]) -> Self {
        let mut content = Vec::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            // The length includes its own digits.
            let length = (1..9)
                .map(|digits| rest + digits)
                .find(|length| rest + length.to_string().len() == *length);
            content.extend(format!("{} {key}=", length.unwrap()).as_bytes());
            content.extend(*value);
            content.push(b'\n');
        }
        self.entry(Head::new(PAX, b"pax", content.len() as u64), &content)
    }

    /// Adds a GNU extension header for the next entry.
    pub(crate) fn gnu(self, kind: u8, text: &[u8]) -> Self {
        self.entry(Head::new(kind, b"././@LongLink", text.len() as u64), text)
    }

    /// Finishes the archive.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.extend([0; 1024]);
        self.0
    }
}
