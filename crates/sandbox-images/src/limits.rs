/// The limits on images. Every size that an untrusted image can choose has a limit here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Layers of an image. Docker creates at most 127.
    pub layers: usize,
    /// Bytes of a manifest, an index or a configuration. They are held in memory, and registries accept no larger
    /// ones.
    pub document_bytes: u64,
    /// Images in an index or an archive.
    pub index_entries: usize,
    /// Nesting depth of indexes.
    pub index_depth: usize,
    /// Bytes of one layer as transferred, and of an imported archive.
    pub blob_bytes: u64,
    /// Files in an imported archive.
    pub archive_entries: usize,
    /// Files, directories and links in all layers together.
    pub entries: u64,
    /// Uncompressed bytes of all layers together.
    pub unpacked_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of a path. The kernel accepts no longer ones.
    pub path_bytes: usize,
    /// Nesting depth of directories. Code that walks the tree later holds a descriptor for each level.
    pub depth: usize,
}

const GIB: u64 = 1 << 30;

impl Default for Limits {
    fn default() -> Self {
        Self {
            layers: 128,
            document_bytes: 4 << 20,
            index_entries: 1000,
            index_depth: 3,
            blob_bytes: 16 * GIB,
            archive_entries: 10_000,
            entries: 1_000_000,
            unpacked_bytes: 32 * GIB,
            file_bytes: 8 * GIB,
            path_bytes: 4095,
            depth: 128,
        }
    }
}
