//! The Docker image for a root: its own files, and mount points for the rest.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bollard::body_full;
use bollard::errors::Error;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::TryStreamExt as _;
use sandbox_core::BackendError;
use sandbox_linux::skeleton::Skeleton;

use super::engine::Engine;
use crate::container::Rootfs;
use crate::error::failed;

const NAME: &str = "sandbox-run/base";

/// An image in the Engine.
pub(super) struct BaseImage {
    pub(super) name: String,
    /// Host paths that its containers also show.
    pub(super) shown: Vec<PathBuf>,
}

impl BaseImage {
    /// Imports the image into the Engine, unless it exists. The directory is for building it.
    pub(super) fn import(
        engine: &Engine,
        directory: &Path,
        root: &Rootfs,
    ) -> Result<Self, BackendError> {
        let built = build(directory, &root.skeleton);
        let archive = built.map_err(|error| failed("build an image", error))?;
        let shown = root.shown.clone();
        let tag = format!("{:016x}", fingerprint(&archive));
        let name = format!("{NAME}:{tag}");
        let docker = engine.docker.clone();
        let asked = name.clone();
        let found = engine.ask(async move { docker.inspect_image(&asked).await });
        match found {
            Ok(_) => return Ok(Self { name, shown }),
            Err(Error::DockerResponseServerError { status_code: 404, .. }) => {}
            Err(error) => return Err(failed("query the image", error)),
        }
        let docker = engine.docker.clone();
        let options = CreateImageOptionsBuilder::new().from_src("-").repo(NAME).tag(&tag).build();
        engine.wait("give the Docker Engine an image", async move {
            let body = body_full(archive.into());
            docker.create_image(Some(options), Some(body), None).try_collect::<Vec<_>>().await
        })?;
        Ok(Self { name, shown })
    }
}

/// The archive, which is identical for identical roots.
fn build(directory: &Path, skeleton: &Skeleton) -> io::Result<Vec<u8>> {
    let root = directory.join("image");
    fs::create_dir(&root)?;
    let archive = skeleton.write(&root).and_then(|()| {
        let mut archive = tar::Builder::new(Vec::new());
        append(&mut archive, &root, Path::new(""))?;
        archive.into_inner()
    });
    fs::remove_dir_all(&root)?;
    archive
}

fn append(archive: &mut tar::Builder<Vec<u8>>, root: &Path, below: &Path) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(root.join(below))?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = below.join(entry.file_name());
        let kind = entry.file_type()?;
        let mut header = tar::Header::new_ustar();
        header.set_mtime(0);
        header.set_mode(match kind.is_dir() {
            // Runtimes give a mounted file system the mode of the directory below it.
            true if path == Path::new("tmp") => 0o1777,
            true => 0o755,
            false => 0o644,
        });
        if kind.is_dir() {
            header.set_entry_type(tar::EntryType::Directory);
            header.set_size(0);
            archive.append_data(&mut header, &path, io::empty())?;
            append(archive, root, &path)?;
        } else if kind.is_symlink() {
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            archive.append_link(&mut header, &path, fs::read_link(entry.path())?)?;
        } else {
            let contents = fs::read(entry.path())?;
            header.set_size(contents.len() as u64);
            archive.append_data(&mut header, &path, &contents[..])?;
        }
    }
    Ok(())
}

/// A name that identifies the image's content.
fn fingerprint(bytes: &[u8]) -> u64 {
    // FNV-1a: stable across versions, which the standard library's hasher does not promise.
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
