//! The cache directory of `scripts/lib.sh`, with what `scripts/setup` and `scripts/peers` install for tests and benchmarks.

use std::path::PathBuf;

/// A file in the cache; `None` if it is not installed.
pub fn installed(path: &str) -> Option<PathBuf> {
    let file = directory()?.join(path);
    file.exists().then_some(file)
}

/// The Python of a virtual environment.
pub fn python(environment: &str) -> Option<PathBuf> {
    installed(&format!("python/{environment}/bin/python"))
}

/// Where `scripts/peers` unpacks other sandboxes.
pub fn peers() -> Option<PathBuf> {
    Some(directory()?.join("peers"))
}

/// The compile cache of benchmarks.
pub fn bench_store() -> Option<PathBuf> {
    Some(directory()?.join("bench-store"))
}

#[expect(clippy::disallowed_methods, reason = "scripts/lib.sh defines it by these variables")]
fn directory() -> Option<PathBuf> {
    let variable = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    variable("SANDBOX_RUN_CACHE").or_else(|| {
        let caches =
            variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))?;
        Some(caches.join("sandbox-run"))
    })
}
