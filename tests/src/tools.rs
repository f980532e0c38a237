//! Tools that `scripts/setup` installs in the cache for tests.

use std::path::PathBuf;

/// A file below the cache folder, if it is there. The folder is that of `scripts/lib.sh`.
pub fn in_cache(path: &str) -> Option<PathBuf> {
    let file = cache()?.join(path);
    file.exists().then_some(file)
}

#[expect(clippy::disallowed_methods, reason = "the scripts that install tools name it this way")]
fn cache() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let ours = named("SANDBOX_RUN_CACHE").map(PathBuf::from);
    let of_user = || {
        let cache = named("XDG_CACHE_HOME").map(PathBuf::from);
        cache.or_else(|| Some(PathBuf::from(named("HOME")?).join(".cache")))
    };
    ours.or_else(|| Some(of_user()?.join("sandbox-run")))
}
