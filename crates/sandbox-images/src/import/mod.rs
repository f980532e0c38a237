//! Images from files: archives of `docker save` in both their forms, and OCI layouts as archives or directories. And
//! from root file systems that are no images yet.

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
use crate::{Digest, ImageError, Kept, Progress, Reference, Store};

/// The files that an import is made of, whatever they lie in.
trait Files {
    /// Finds a file by its path, takes it into the staging area, and says what its digest and size are. None if it is
    /// not there.
    fn take(
        &mut self,
        staging: &mut Staging<'_>,
        path: &str,
    ) -> Result<Option<(Digest, u64)>, ImageError>;
}

/// An image that was found, all its parts staged.
#[derive(Debug)]
struct Found {
    manifest: Digest,
    /// What it says it is called.
    names: Vec<Reference>,
}

impl Store {
    /// Takes the images of an archive or a directory, all of them or none.
    ///
    /// They get the names that they bring, or this one if there is only one image.
    pub fn import(
        &self,
        path: &Path,
        name: Option<&Reference>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<Kept>, ImageError> {
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
        let is_directory = file.metadata().map_err(ImageError::io("look at", path))?.is_dir();
        let mut staging = self.stage()?;
        let mut files: Box<dyn Files> = if is_directory {
            Box::new(directory::Opened::new(file))
        } else {
            Box::new(archive::read(file, &mut staging, progress)?)
        };
        let found = find_images(files.as_mut(), &mut staging)?;
        let images = name_images(found, name)?;
        for (_, manifest) in &images {
            staging.prepare(manifest, progress)?;
        }
        staging.publish(&images)?;
        Ok(images.into_iter().map(|(name, _)| name).collect())
    }
}

fn find_images(files: &mut dyn Files, staging: &mut Staging<'_>) -> Result<Vec<Found>, ImageError> {
    // New archives of Docker hold both. The layout says more: it has digests for everything.
    let docker = files.take(staging, docker::LIST)?;
    let index = files.take(staging, layout::INDEX)?;
    let found = match (index, docker) {
        (Some((index, _)), docker) => {
            let mut found = layout::find(files, staging, &index)?;
            if let (Some((list, _)), [only]) = (docker, found.as_mut_slice()) {
                // But the names are better in the list.
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
    found: Vec<Found>,
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
