/// How much an image may be. Everything that a stranger can choose the size of has a bound here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Layers of one image. Docker itself makes no more than 127.
    pub layers: usize,
    /// Bytes of a manifest, an index or a configuration. They are held in memory, and registries take no
    /// larger ones.
    pub document_bytes: u64,
    /// Images that an index or an archive may name.
    pub index_entries: usize,
    /// Indexes that lead to indexes.
    pub index_depth: usize,
    /// Bytes of one layer as it is sent, and of an archive that is imported.
    pub blob_bytes: u64,
    /// Files in an archive that is imported.
    pub archive_entries: usize,
    /// Files, directories and links in all layers together.
    pub entries: u64,
    /// Bytes of all layers together, once they are decompressed.
    pub unpacked_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of a path. The kernel takes no longer ones.
    pub path_bytes: usize,
    /// Directories inside one another. Whoever walks the tree later holds a descriptor for each.
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
