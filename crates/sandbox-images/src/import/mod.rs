//! Imports images from files: `docker save` archives in both formats, and OCI layouts as archives or directories.
//! Also creates images from root file systems.

mod archive;
mod directory;
mod docker;
mod layout;
mod root;

use std::fs::File;
use std::path::Path;

#[cfg(feature = "pull")]
pub(crate) use layout::too_deep;

use crate::store::Staging;
use crate::{Digest, ImageError, ImageInfo, Progress, Reference, Store};

/// The files of an import, in an archive or a directory.
trait ImageFiles {
    /// Stages a file and returns its digest and size; none if it does not exist.
    fn stage(
        &mut self,
        staging: &mut Staging<'_>,
        path: &str,
    ) -> Result<Option<(Digest, u64)>, ImageError>;
}

/// An image whose blobs are all staged.
#[derive(Debug)]
struct StagedImage {
    manifest: Digest,
    /// Its names in the archive.
    names: Vec<Reference>,
}

impl Store {
    /// Imports the images of an archive or a directory, all of them or none.
    ///
    /// They get their names in the archive, or `name` if there is only one image.
    pub fn import(
        &self,
        path: &Path,
        name: Option<&Reference>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<ImageInfo>, ImageError> {
        let imported = self.import_all(path, name, progress);
        let names = imported.map_err(|error| error.about(&path.display()))?;
        names.iter().map(|name| self.find(name)).collect()
    }

    fn import_all(
        &self,
        path: &Path,
        name: Option<&Reference>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Reference>, ImageError> {
        let file = File::open(path).map_err(ImageError::io("open", path))?;
        let is_directory = file.metadata().map_err(ImageError::io("inspect", path))?.is_dir();
        let mut staging = self.stage()?;
        let mut files: Box<dyn ImageFiles> = if is_directory {
            Box::new(directory::DirectoryFiles::new(file))
        } else {
            Box::new(archive::read(file, &mut staging, progress)?)
        };
        let found = find_images(files.as_mut(), &mut staging)?;
        let images = name_images(found, name)?;
        for (_, manifest) in &images {
            staging.unpack(manifest, progress)?;
        }
        staging.publish(&images)?;
        Ok(images.into_iter().map(|(name, _)| name).collect())
    }
}

fn find_images(
    files: &mut dyn ImageFiles,
    staging: &mut Staging<'_>,
) -> Result<Vec<StagedImage>, ImageError> {
    // Newer archives of Docker contain both. The layout is preferred: it has digests for everything.
    let docker = files.stage(staging, docker::LIST)?;
    let index = files.stage(staging, layout::INDEX)?;
    let found = match (index, docker) {
        (Some((index, _)), docker) => {
            let mut found = layout::find(files, staging, &index)?;
            if let (Some((list, _)), [only]) = (docker, found.as_mut_slice()) {
                // The list has more complete names.
                only.names.extend(docker::names(staging, &list)?);
            }
            found
        }
        (None, Some((list, _))) => docker::find(files, staging, &list)?,
        (None, None) => return Err(ImageError::NoImageInside("index.json or manifest.json")),
    };
    if found.is_empty() {
        return Err(ImageError::NoImageInside("image listed"));
    }
    Ok(found)
}

fn name_images(
    found: Vec<StagedImage>,
    name: Option<&Reference>,
) -> Result<Vec<(Reference, Digest)>, ImageError> {
    let mut images = Vec::new();
    match (name, found.as_slice()) {
        (Some(name), [only]) => images.push((name.clone(), only.manifest.clone())),
        (Some(_), several) => return Err(ImageError::SeveralImages(several.len())),
        (None, _) => {
            for image in found {
                if image.names.is_empty() {
                    return Err(ImageError::NoName);
                }
                let named = image.names.into_iter().map(|name| (name, image.manifest.clone()));
                images.extend(named);
            }
        }
    }
    images.sort();
    images.dedup();
    Ok(images)
}
