//! Creates an image from an archive of a root file system.

use std::io::{self, Read, Write};

use tar::{EntryType, Header};

use crate::documents::{ConfigFile, Manifest};
use crate::store::Staging;
use crate::{Digest, ImageConfig, ImageError, ImageInfo, Progress, Reference, Store};

/// A mount point that sandboxes need. It cannot be created later, because unpacked images are never written to, and
/// archives of root file systems often omit it because of its devices.
const DEV_DIRECTORY: &str = "dev/";

impl Store {
    /// Creates an image of one layer, a tar archive of a root file system. The archive is untrusted and fully checked.
    ///
    /// The same archive and configuration give the same image, with the same digest.
    pub fn add_root(
        &self,
        root: &mut dyn Read,
        config: &ImageConfig,
        name: &Reference,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ImageInfo, ImageError> {
        let added = self.add_layer(root, config, name, progress);
        added.map_err(|error| error.about(name))?;
        self.find(name)
    }

    fn add_layer(
        &self,
        root: &mut dyn Read,
        config: &ImageConfig,
        name: &Reference,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), ImageError> {
        let mut staging = self.stage()?;
        let layer = stage_layer(&mut staging, root)?;
        let config = ConfigFile::create(config, &layer.0).to_string();
        let config = (staging.add_bytes(config.as_bytes())?, config.len() as u64);
        let manifest = serde_json::to_vec(&Manifest::create(&config, &[layer]))
            .map_err(|error| ImageError::document("manifest", error))?;
        let manifest = staging.add_bytes(&manifest)?;
        staging.unpack(&manifest, progress)?;
        staging.publish(&[(name.clone(), manifest)])
    }
}

fn stage_layer(
    staging: &mut Staging<'_>,
    root: &mut dyn Read,
) -> Result<(Digest, u64), ImageError> {
    let limit = staging.limits.blob_bytes;
    let mut writer = staging.blob_writer()?;
    let copied = writer
        .write_all(directory(DEV_DIRECTORY)?.as_bytes())
        .and_then(|()| io::copy(&mut root.take(limit.saturating_add(1)), &mut writer));
    if copied.map_err(ImageError::io("write", "the layer".as_ref()))? > limit {
        return Err(ImageError::LimitExceeded {
            what: "the size of the layer in bytes".to_owned(),
            limit,
        });
    }
    staging.add(writer)
}

/// The header of a directory entry, which the rest of the archive follows.
fn directory(path: &str) -> Result<Header, ImageError> {
    let mut header = Header::new_ustar();
    header.set_path(path).map_err(ImageError::io("name", path.as_ref()))?;
    header.set_entry_type(EntryType::Directory);
    header.set_mode(0o755);
    header.set_size(0);
    header.set_mtime(0);
    header.set_cksum();
    Ok(header)
}
