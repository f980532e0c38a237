use std::path::{Path, PathBuf};

/// No id of a key is as short as this.
const WITHOUT_KEY: &str = "keyless";

/// Where the environments of a client lie. Ids of keys are our own, made of letters and digits.
pub(crate) fn directory_of(root: &Path, owner: Option<&str>) -> PathBuf {
    root.join(owner.unwrap_or(WITHOUT_KEY))
}
