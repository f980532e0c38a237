/// Finds the first token that looks like a version, after the text `after` if given.
///
/// A version begins with a digit at the start of a word (a `v` before it does not count), and goes on
/// with letters, digits, and `. + - _`.
pub(crate) fn find<'a>(text: &'a str, after: Option<&str>) -> Option<&'a str> {
    let text = match after {
        Some(marker) => &text[text.find(marker)? + marker.len()..],
        None => text,
    };
    text.split(|c: char| !(c.is_ascii_alphanumeric() || ".+-_".contains(c)))
        .map(|word| word.strip_prefix('v').unwrap_or(word))
        .map(|word| word.trim_end_matches(['.', '-', '+', '_']))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a version is the one asked for, or a closer description of it: 3.11.2 is a 3.11 and a 3.
pub(crate) fn satisfies(version: &str, wanted: &str) -> bool {
    version
        .strip_prefix(wanted)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '+']))
}

/// Orders versions by their numbers: 1.10 is after 1.9, and 1.10 before 1.10.1.
pub(crate) fn compare(left: &str, right: &str) -> std::cmp::Ordering {
    numbers(left).cmp(numbers(right))
}

fn numbers(version: &str) -> impl Iterator<Item = u64> {
    version
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty())
        // A number that overflows sorts last.
        .map(|digits| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_toolchains_print() {
        let cases = [
            ("Python 3.11.2\n", None, Some("3.11.2")),
            ("GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)", None, Some("5.2.15")),
            ("12.2.0\n", None, Some("12.2.0")),
            ("v20.11.1", None, Some("20.11.1")),
            ("gcc (Debian 12.2.0-14) 12.2.1", Some(") "), Some("12.2.1")),
            ("go version go1.22.1 linux", Some("go version go"), Some("1.22.1")),
            ("tool v2.", None, Some("2")),
            ("x86_64 only", None, None),
            ("3.1", Some("version "), None),
            ("", None, None),
        ];
        for (text, after, version) in cases {
            assert_eq!(find(text, after), version, "{text:?}");
        }
    }

    #[test]
    fn a_shorter_version_is_satisfied_by_a_longer_one() {
        assert!(satisfies("3.11.2", "3.11") && satisfies("3.11.2", "3"));
        assert!(satisfies("3.11.2", "3.11.2"));
        assert!(!satisfies("3.11.2", "3.1") && !satisfies("3.11", "3.11.2"));
    }

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        use std::cmp::Ordering::{Equal, Greater, Less};
        assert_eq!(compare("3.9", "3.11.2"), Less);
        assert_eq!(compare("go1.22", "go1.21.9"), Greater);
        assert_eq!(compare("1.10", "1.10.1"), Less);
        assert_eq!(compare("17", "17"), Equal);
    }
}
