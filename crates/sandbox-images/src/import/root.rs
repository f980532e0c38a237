//! An image made of a root file system, of which there is only an archive.

use std::io::{self, Read, Write};

use tar::{EntryType, Header};

use crate::documents::{ConfigFile, Manifest};
use crate::store::Staging;
use crate::{Digest, ImageConfig, ImageError, Kept, Progress, Reference, Store};

/// Sandboxes mount something there, and nobody can make it later: what is unpacked is never written to. Whoever packs the
/// root of a system leaves it out, because of the devices in it.
const MOUNTED_LATER: &str = "dev/";

impl Store {
    /// Makes an image of one layer: a tar archive with the files of a root. It is judged like one from a stranger.
    ///
    /// The same archive and configuration are the same image, with the same digest.
    pub fn add_root(
        &self,
        root: &mut dyn Read,
        config: &ImageConfig,
        name: &Reference,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Kept, ImageError> {
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
        let layer = keep_layer(&mut staging, root)?;
        let config = ConfigFile::made_for(config, &layer.0).to_string();
        let config = (staging.keep_bytes(config.as_bytes())?, config.len() as u64);
        let manifest = serde_json::to_vec(&Manifest::made_for(&config, &[layer]))
            .map_err(|error| ImageError::document("manifest", error))?;
        let manifest = staging.keep_bytes(&manifest)?;
        staging.prepare(&manifest, progress)?;
        staging.publish(&[(name.clone(), manifest)])
    }
}

fn keep_layer(staging: &mut Staging<'_>, root: &mut dyn Read) -> Result<(Digest, u64), ImageError> {
    let most = staging.limits.blob_bytes;
    let mut writer = staging.writer()?;
    let copied = writer
        .write_all(directory(MOUNTED_LATER)?.as_bytes())
        .and_then(|()| io::copy(&mut root.take(most.saturating_add(1)), &mut writer));
    if copied.map_err(ImageError::io("write", "the layer".as_ref()))? > most {
        return Err(ImageError::TooMuch {
            what: "the size of its layer in bytes".to_owned(),
            most,
        });
    }
    staging.keep(writer)
}

/// A directory as it stands in an archive. Others can follow.
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
