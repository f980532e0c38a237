use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sandbox_api::ExecuteRequest;

use super::convert::code_size;

/// A request with more code is checked on a thread that may block.
const MAX_CODE_BYTES: usize = 64 * 1024;
/// The maximum number of languages and versions to remember.
const MAX_TOOLCHAINS: usize = 256;

/// The languages and versions of earlier requests. Their toolchains were detected, so the next request can be checked
/// without access to the file system: at once, instead of on a thread that may block.
#[derive(Default)]
pub(super) struct ToolchainsSeen {
    languages: Mutex<HashSet<(String, Option<String>)>>,
}

impl ToolchainsSeen {
    /// Remembers the toolchain of a request that was checked.
    pub(super) fn add(&self, request: &ExecuteRequest) {
        let mut languages = self.lock();
        if languages.len() < MAX_TOOLCHAINS {
            languages.insert(toolchain(request));
        }
    }

    /// Whether checking a request takes only microseconds.
    pub(super) fn is_quick_to_check(&self, request: &ExecuteRequest) -> bool {
        let reads_files = request.template.is_some()
            || request.environment.is_some()
            || request.workspace.is_some()
            || !request.volumes.is_empty()
            || !request.packages.is_empty();
        !reads_files
            && code_size(request) <= MAX_CODE_BYTES
            && self.lock().contains(&toolchain(request))
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<(String, Option<String>)>> {
        // No panic leaves the set half changed.
        self.languages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The language and the version as the client wrote them.
fn toolchain(request: &ExecuteRequest) -> (String, Option<String>) {
    (request.language.clone(), request.version.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_requests_with_a_seen_toolchain_are_quick() {
        let seen = ToolchainsSeen::default();
        let request = ExecuteRequest {
            language: "python".into(),
            code: Some("1".into()),
            ..ExecuteRequest::default()
        };
        assert!(!seen.is_quick_to_check(&request));
        seen.add(&request);
        assert!(seen.is_quick_to_check(&request));
        let other = ExecuteRequest { version: Some("2".into()), ..request.clone() };
        assert!(!seen.is_quick_to_check(&other));
        let large =
            ExecuteRequest { code: Some("x".repeat(MAX_CODE_BYTES + 1)), ..request.clone() };
        assert!(!seen.is_quick_to_check(&large));
        let with_files = ExecuteRequest { environment: Some("e".into()), ..request };
        assert!(!seen.is_quick_to_check(&with_files));
    }
}
