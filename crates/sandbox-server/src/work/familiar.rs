use std::collections::HashSet;
use std::sync::Mutex;

use sandbox_api::ExecuteRequest;

use super::convert::code_size;
use super::live::lock;

/// More code than this takes a moment to check.
const SMALL: usize = 64 * 1024;
/// More spellings of languages and their versions than anybody needs.
const MOST: usize = 256;

/// Languages that were asked for before. Their toolchains are found, so that another request can be
/// checked without a look at the host: at once, instead of on a thread that may wait.
#[derive(Default)]
pub(super) struct Familiar {
    languages: Mutex<HashSet<Spelling>>,
}

/// A language and its version, as a client wrote them.
type Spelling = (String, Option<String>);

impl Familiar {
    /// A request in this language was checked.
    pub(super) fn add(&self, asked: &ExecuteRequest) {
        let mut languages = lock(&self.languages);
        if languages.len() < MOST {
            languages.insert(spelling(asked));
        }
    }

    /// Whether checking it is a matter of microseconds.
    pub(super) fn is_quick_to_check(&self, asked: &ExecuteRequest) -> bool {
        let looks_at_files = asked.template.is_some()
            || asked.environment.is_some()
            || asked.workspace.is_some()
            || !asked.packages.is_empty();
        !looks_at_files
            && code_size(asked) <= SMALL
            && lock(&self.languages).contains(&spelling(asked))
    }
}

fn spelling(asked: &ExecuteRequest) -> Spelling {
    (asked.language.clone(), asked.version.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_seen_and_is_small_is_quick() {
        let familiar = Familiar::default();
        let asked = ExecuteRequest {
            language: "python".into(),
            code: Some("1".into()),
            ..ExecuteRequest::default()
        };
        assert!(!familiar.is_quick_to_check(&asked));
        familiar.add(&asked);
        assert!(familiar.is_quick_to_check(&asked));
        let other = ExecuteRequest { version: Some("2".into()), ..asked.clone() };
        assert!(!familiar.is_quick_to_check(&other));
        let large = ExecuteRequest { code: Some("x".repeat(SMALL + 1)), ..asked.clone() };
        assert!(!familiar.is_quick_to_check(&large));
        let with_files = ExecuteRequest { environment: Some("e".into()), ..asked };
        assert!(!familiar.is_quick_to_check(&with_files));
    }
}
