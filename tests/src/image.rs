//! Small images with this host's shell and the files of a test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use sandbox_images::{Digest, Store};
use tempfile::TempDir;

/// A store with one image in it.
pub struct TestImage {
    /// The store.
    pub store: Store,
    /// The image's name.
    pub name: &'static str,
    /// The file that it was imported from.
    pub archive: PathBuf,
    _directory: TempDir,
}

/// The content of an image.
pub struct Layer(tar::Builder<Vec<u8>>);

/// Programs in every test image.
const PROGRAMS: &[&str] = &["bash", "cat", "ls", "id"];

impl Layer {
    /// A layer with a shell and a few programs, on a merged `/usr`.
    pub fn with_shell() -> Self {
        let mut layer = Self(tar::Builder::new(Vec::new()));
        for (link, target) in [("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")] {
            layer = layer.link(link, target);
        }
        let mut libraries = BTreeSet::new();
        for program in PROGRAMS {
            let path = Path::new("/usr/bin").join(program);
            layer = layer.file(&format!("usr/bin/{program}"), 0o755, &read(&path));
            libraries.extend(libraries_of(&path));
        }
        for library in &libraries {
            let inside = library.to_str().expect("it is plain text");
            let inside = inside.trim_start_matches("/usr").trim_start_matches('/');
            layer = layer.file(&format!("usr/{inside}"), 0o755, &read(library));
        }
        layer
    }

    /// Adds a file.
    #[must_use]
    pub fn file(mut self, path: &str, mode: u32, contents: &[u8]) -> Self {
        let mut header = tar::Header::new_gnu();
        header.set_mode(mode);
        header.set_size(contents.len() as u64);
        self.0.append_data(&mut header, path, contents).expect("it can be archived");
        self
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn link(mut self, path: &str, target: &str) -> Self {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_mode(0o777);
        header.set_size(0);
        self.0.append_link(&mut header, path, target).expect("it can be archived");
        self
    }

    /// Imports an image with this layer into a new store.
    pub fn into_image(self) -> TestImage {
        let name = "test/shell:1";
        let layer = self.0.into_inner().expect("it can be archived");
        let config = serde_json::json!({
            "architecture": if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" },
            "os": "linux",
            "config": {"Env": ["PATH=/usr/bin:/bin", "IN_IMAGE=yes"]},
            "rootfs": {"type": "layers", "diff_ids": [Digest::of(&layer).to_string()]},
        });
        let manifest = serde_json::json!([
            {"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]},
        ]);
        let archive = Self(tar::Builder::new(Vec::new()))
            .file("manifest.json", 0o644, manifest.to_string().as_bytes())
            .file("config.json", 0o644, config.to_string().as_bytes())
            .file("layer.tar", 0o644, &layer);
        let archive = archive.0.into_inner().expect("it can be archived");
        let directory = tempfile::tempdir().expect("there is room");
        let file = directory.path().join("image.tar");
        std::fs::write(&file, archive).expect("there is room");
        let store = Store::open(&directory.path().join("store")).expect("it can be made");
        store.import(&file, None, &mut |_| {}).expect("it is an image");
        TestImage { store, name, archive: file, _directory: directory }
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The shared libraries of a program.
fn libraries_of(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().expect("there is ldd");
    let text = String::from_utf8(output.stdout).expect("it prints paths");
    let path =
        |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    text.lines().filter_map(path).collect()
}
