use std::path::{Path, PathBuf};

/// The directory of clients without a key. Ids of keys are longer.
const WITHOUT_KEY: &str = "keyless";

/// The directory of a client's environments. Ids of keys are safe file names: the server creates them from letters and
/// digits.
pub(crate) fn directory_of(root: &Path, owner: Option<&str>) -> PathBuf {
    root.join(owner.unwrap_or(WITHOUT_KEY))
}
