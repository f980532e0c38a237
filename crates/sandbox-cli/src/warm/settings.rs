//! Environment variables of a client and its helper.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use sandbox::parse_duration;

use crate::errors::Failure;

const IDLE: &str = "SANDBOX_RUN_WARM_IDLE";
/// How long a helper stays if nobody says anything else.
pub(super) const DEFAULT_IDLE: Duration = Duration::from_mins(10);

/// Variables that the library, or a toolchain that it asks about itself, goes by.
const NAMES: &[&str] = &[
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "JAVA_HOME",
    "VIRTUAL_ENV",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    // Coverage is measured in the helper too, where the build asks for it.
    "LLVM_PROFILE_FILE",
];

/// Beginnings of the names of others: settings of our own, of package managers, and of version managers
/// whose shims stand for toolchains.
const BEGINNINGS: &[&str] = &[
    "SANDBOX_RUN_",
    "XDG_",
    "SSL_CERT_",
    "PIP_",
    "NPM_CONFIG_",
    "CARGO_",
    "RUSTUP_",
    "GO",
    "PYENV_",
    "RBENV_",
    "NODENV_",
    "NVM_",
    "FNM_",
    "VOLTA_",
    "ASDF_",
    "MISE_",
    "SDKMAN_",
];

/// For the command and this process alone, or told to the helper with each request.
const LEFT_OUT: &[&str] = &[
    IDLE,
    "SANDBOX_RUN_SERVER",
    "SANDBOX_RUN_API_KEY",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_ID",
    "XDG_SESSION_CLASS",
    "XDG_SESSION_TYPE",
    "XDG_SEAT",
    "XDG_VTNR",
    "XDG_ACTIVATION_TOKEN",
];

/// The variables that matter, in order: a helper gets these and no others, so that it does not depend on
/// which of its clients happened to start it.
pub(super) fn variables() -> Vec<(OsString, OsString)> {
    let mut kept: Vec<_> =
        std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(matters)).collect();
    kept.sort();
    kept
}

fn matters(name: &str) -> bool {
    // Proxies and npm's settings are written in small letters too.
    let upper = name.to_ascii_uppercase();
    let begins = BEGINNINGS.iter().any(|beginning| upper.starts_with(beginning));
    let is_named = NAMES.contains(&name) || upper.ends_with("_PROXY");
    (begins || is_named) && !LEFT_OUT.contains(&name)
}

/// How long a helper stays without work.
#[expect(clippy::disallowed_methods, reason = "this is the configuration code that asks")]
pub(super) fn idle() -> Result<Duration, Failure> {
    match std::env::var_os(IDLE).filter(|value| !value.is_empty()) {
        None => Ok(DEFAULT_IDLE),
        Some(text) => parse_duration(&text.to_string_lossy())
            .map_err(|error| Failure::Usage(format!("{IDLE}: {error}"))),
    }
}

/// Where the user's sockets belong, if the session has such a place.
#[expect(clippy::disallowed_methods, reason = "this is the configuration code that asks")]
pub(super) fn runtime_directory() -> Option<PathBuf> {
    let path = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    path.filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_matter_and_what_a_session_is_called_does_not() {
        for name in ["HOME", "PATH", "SANDBOX_RUN_STORE", "https_proxy", "npm_config_registry"] {
            assert!(matters(name), "{name}");
        }
        for name in ["TERM", "SSH_TTY", "XDG_SESSION_ID", IDLE, "SANDBOX_RUN_API_KEY", "path"] {
            assert!(!matters(name), "{name}");
        }
    }
}
