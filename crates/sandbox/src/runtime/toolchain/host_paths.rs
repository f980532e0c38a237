use std::path::{Path, PathBuf};

/// Directories of this user and host in which programs and toolchains are searched.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostPaths {
    /// The user's home.
    pub(crate) home: Option<PathBuf>,
    /// Directories of `PATH`: absolute ones only.
    pub(crate) path: Vec<PathBuf>,
    /// Directory in which `runtimes --install` installs toolchains.
    pub(crate) toolchains: Option<PathBuf>,
    /// File that caches the versions of toolchains.
    pub(crate) version_cache: Option<PathBuf>,
}

/// Searched after `PATH`: the `PATH` inside a sandbox.
pub(crate) const SYSTEM_PATH: &[&str] = &["/usr/local/bin", "/usr/bin", "/bin"];

impl HostPaths {
    /// From the variables of this process.
    #[expect(clippy::disallowed_methods, reason = "this is the configuration code that asks")]
    pub(crate) fn from_environment() -> Self {
        let variable = |name: &str| std::env::var_os(name);
        let directory =
            |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = directory("HOME");
        let below_home = |path: &str| home.as_ref().map(|home| home.join(path));
        let data = directory("XDG_DATA_HOME").or_else(|| below_home(".local/share"));
        let cache = directory("XDG_CACHE_HOME").or_else(|| below_home(".cache"));
        let path = variable("PATH").unwrap_or_default();
        let mut path: Vec<PathBuf> =
            std::env::split_paths(&path).filter(|directory| directory.is_absolute()).collect();
        for directory in SYSTEM_PATH.iter().map(Path::new) {
            if !path.iter().any(|known| known == directory) {
                path.push(directory.to_owned());
            }
        }
        Self {
            path,
            toolchains: data.map(|data| data.join("sandbox-run/toolchains")),
            version_cache: cache.map(|cache| cache.join("sandbox-run/versions.json")),
            home,
        }
    }
}

/// Directory in which `runtimes --install` installs toolchains that the system's package manager does not have.
pub fn toolchains_directory() -> Option<PathBuf> {
    HostPaths::from_environment().toolchains
}
