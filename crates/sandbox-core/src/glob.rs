use std::fmt;
use std::str::FromStr;

/// A pattern over paths: `*` and `?` within a name, `**` across directories, `[a-z]` for one of a
/// set.
///
/// Implemented here because existing crates bring in a regular-expression engine, and the names
/// that are matched come from hostile programs: matching takes time proportional to the pattern's
/// length times the name's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    text: String,
    names: Vec<Vec<char>>,
}

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a pattern for files in the work directory: {reason}")]
pub struct InvalidGlob {
    text: String,
    reason: &'static str,
}

impl Glob {
    /// Whether the pattern matches the whole path. `*.txt` matches only in the top directory,
    /// `**/*.txt` in any.
    pub fn matches(&self, path: &str) -> bool {
        self.covered(path).last() == Some(&true)
    }

    /// Whether the pattern selects the file: it matches the file's path, or that of a directory
    /// above it. Only a literal last name selects a directory with everything in it; `out/*`
    /// selects the files of `out` and not those of its subdirectories.
    pub fn names(&self, path: &str) -> bool {
        let covered = self.covered(path);
        covered.last() == Some(&true) || (self.ends_in_a_name() && covered.contains(&true))
    }

    fn ends_in_a_name(&self) -> bool {
        self.names.last().is_some_and(|name| !name.iter().any(|letter| "*?[".contains(*letter)))
    }

    /// For each prefix of the path, from the empty one to the whole path, whether the pattern
    /// matches it.
    fn covered(&self, path: &str) -> Vec<bool> {
        let path: Vec<Vec<char>> = path.split('/').map(|name| name.chars().collect()).collect();
        // reachable[i]: the first i names of the path are covered by the pattern so far.
        let mut reachable = vec![false; path.len() + 1];
        reachable[0] = true;
        for pattern in &self.names {
            let mut next = vec![false; path.len() + 1];
            if pattern.as_slice() == ['*', '*'] {
                let mut covered = false;
                for (index, slot) in next.iter_mut().enumerate() {
                    covered |= reachable[index];
                    *slot = covered;
                }
            } else {
                for index in 0..path.len() {
                    next[index + 1] = reachable[index] && name_matches(pattern, &path[index]);
                }
            }
            reachable = next;
        }
        reachable
    }
}

fn name_matches(pattern: &[char], name: &[char]) -> bool {
    let (mut pattern_at, mut name_at) = (0, 0);
    // Where to resume after the last star: each failure makes the star take one more character.
    let mut retry: Option<(usize, usize)> = None;
    while name_at < name.len() {
        let step = match pattern.get(pattern_at) {
            Some('*') => {
                retry = Some((pattern_at + 1, name_at));
                pattern_at += 1;
                continue;
            }
            Some('?') => Some(1),
            Some('[') => set_matches(&pattern[pattern_at..], name[name_at]),
            Some(letter) if *letter == name[name_at] => Some(1),
            _ => None,
        };
        if let Some(length) = step {
            pattern_at += length;
            name_at += 1;
        } else if let Some((after_star, taken)) = retry {
            retry = Some((after_star, taken + 1));
            pattern_at = after_star;
            name_at = taken + 1;
        } else {
            return false;
        }
    }
    pattern[pattern_at..].iter().all(|letter| *letter == '*')
}

/// The length of the set in the pattern if the letter is in it.
fn set_matches(pattern: &[char], letter: char) -> Option<usize> {
    let end = pattern.iter().skip(2).position(|c| *c == ']')? + 2;
    let (inverted, set) = match pattern[1] {
        '!' | '^' => (true, &pattern[2..end]),
        _ => (false, &pattern[1..end]),
    };
    let mut found = false;
    let mut index = 0;
    while index < set.len() {
        if index + 2 < set.len() && set[index + 1] == '-' {
            found |= (set[index]..=set[index + 2]).contains(&letter);
            index += 3;
        } else {
            found |= set[index] == letter;
            index += 1;
        }
    }
    (found != inverted).then_some(end + 1)
}

impl FromStr for Glob {
    type Err = InvalidGlob;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |reason| InvalidGlob { text: text.to_owned(), reason };
        if text.starts_with('/') {
            return Err(refuse("it must be relative to the work directory"));
        }
        let names: Vec<&str> =
            text.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        if names.is_empty() {
            return Err(refuse("it is empty"));
        }
        if names.contains(&"..") {
            return Err(refuse("it contains '..'"));
        }
        if text.chars().any(char::is_control) {
            return Err(refuse("it contains a control character"));
        }
        let names: Vec<Vec<char>> = names.iter().map(|name| name.chars().collect()).collect();
        for name in &names {
            let mut rest = name.as_slice();
            while let Some(open) = rest.iter().position(|c| *c == '[') {
                rest = &rest[open..];
                let close = rest.iter().skip(2).position(|c| *c == ']');
                let close = close.ok_or_else(|| refuse("a '[' is not closed by ']'"))?;
                rest = &rest[close + 3..];
            }
        }
        Ok(Self { text: text.to_owned(), names })
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, fits: &[&str], fits_not: &[&str]) {
        let glob: Glob = pattern.parse().unwrap();
        for path in fits {
            assert!(glob.matches(path), "{pattern} should fit {path}");
        }
        for path in fits_not {
            assert!(!glob.matches(path), "{pattern} should not fit {path}");
        }
    }

    #[test]
    fn patterns_fit_as_in_a_shell() {
        check("*.txt", &["a.txt", ".txt"], &["a.txtx", "d/a.txt", "txt"]);
        check("out/*", &["out/a"], &["out", "out/a/b", "xout/a"]);
        check("**/*.py", &["a.py", "x/y/a.py"], &["a.pyc"]);
        check("**", &["a", "a/b/c"], &[]);
        check("a/**/b", &["a/b", "a/x/y/b"], &["a/x/c"]);
        check("f?[0-9].[!x]", &["fo1.y"], &["fo1.x", "foo.y", "f1.y"]);
        check("a*b*c", &["abc", "aXXbYYbc"], &["ab", "acb"]);
    }

    #[test]
    fn a_name_that_is_written_out_stands_for_all_that_is_in_it() {
        for (pattern, path, is_named) in [
            ("out", "out", true),
            ("out", "out/a/b", true),
            ("out/", "out/a", true),
            ("*/out", "x/out/a", true),
            ("**/out", "out/a", true),
            ("**/out", "x/y/out/z/a", true),
            ("out", "output", false),
            ("out", "x/out", false),
            ("out/a", "out/b", false),
            ("*", "out/a", false),
            ("out/*", "out/a/b", false),
            ("ou?", "out/a", false),
            ("ou[t]", "out/a", false),
        ] {
            let glob: Glob = pattern.parse().unwrap();
            assert_eq!(glob.names(path), is_named, "{pattern} and {path}");
        }
    }

    #[test]
    fn patterns_that_lead_out_are_refused() {
        for text in ["", "/etc/*", "../*", "a/../b", "[abc", "a\n"] {
            assert!(text.parse::<Glob>().is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern: Glob = "*a".repeat(50).parse().unwrap();
        assert!(!pattern.matches(&"a".repeat(49)));
        assert!(!pattern.matches(&format!("{}b", "a".repeat(20_000))));
    }
}
