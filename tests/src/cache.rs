//! Files that `scripts/setup` downloads for tests and benchmarks.

use std::path::PathBuf;

/// The Python of an environment that was set up for tests; none if it was not.
pub fn python(environment: &str) -> Option<PathBuf> {
    let python = directory()?.join("python").join(environment).join("bin/python");
    python.exists().then_some(python)
}

/// Where `scripts/peers` unpacks other sandboxes.
pub fn peers() -> Option<PathBuf> {
    Some(directory()?.join("peers"))
}

/// Where benchmarks keep what is compiled for them.
pub fn bench_store() -> Option<PathBuf> {
    Some(directory()?.join("bench-store"))
}

#[expect(clippy::disallowed_methods, reason = "the scripts find their cache the same way")]
fn directory() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    named("SANDBOX_RUN_CACHE").or_else(|| {
        let caches = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))?;
        Some(caches.join("sandbox-run"))
    })
}
