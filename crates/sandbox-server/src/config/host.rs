use std::ffi::OsString;
use std::path::PathBuf;

/// What defaults depend on: the process environment and the host. Tests supply their own values.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostInfo {
    /// All environment variables.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// The user's home directory.
    pub(crate) home: Option<PathBuf>,
    /// `XDG_STATE_HOME`.
    pub(crate) state_home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub(crate) config_home: Option<PathBuf>,
    /// CPUs that this process may use.
    pub(crate) cores: usize,
    /// Memory available without swapping, in bytes.
    pub(crate) available_memory: Option<u64>,
}

impl HostInfo {
    /// Reads them from the process and the kernel.
    pub(crate) fn detect() -> Self {
        let variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let path = |name: &str| {
            let (_, value) = variables.iter().find(|(variable, _)| variable == name)?;
            (!value.is_empty()).then(|| PathBuf::from(value))
        };
        Self {
            home: path("HOME"),
            state_home: path("XDG_STATE_HOME"),
            config_home: path("XDG_CONFIG_HOME"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            available_memory: std::fs::read_to_string("/proc/meminfo")
                .ok()
                .and_then(|text| available_memory(&text)),
            variables,
        }
    }
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn available_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_parsed_from_meminfo() {
        let table = "MemTotal:       100 kB\nMemAvailable:    40 kB\n";
        assert_eq!(available_memory(table), Some(40 * 1024));
        assert_eq!(available_memory("MemTotal: 1 kB\n"), None);
    }
}
