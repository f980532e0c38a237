//! Loads a profile: from TOML text to validated rules.

use super::arch::Arch;
use super::error::{EntryProblem, ProfileError};
use super::file::{AllowEntry, DenyEntry, ProfileFile};
use super::rules::{AllowRule, Answer, CallRules, DenyRule, Reporting, RuleTable};

/// The profile that ships with the program.
const BUILTIN: &str = include_str!("../../../../profiles/default.toml");

/// A system-call policy, validated and ready to be compiled or queried.
#[derive(Debug)]
pub struct Profile {
    x86_64: RuleTable,
    aarch64: RuleTable,
}

impl Profile {
    /// The built-in profile.
    ///
    /// # Panics
    ///
    /// If the built-in file is invalid, which a test excludes.
    pub fn builtin() -> Self {
        Self::parse(BUILTIN).expect("the shipped profile is checked by the tests")
    }

    /// Reads a profile from TOML text. The format is described at the top of
    /// `profiles/default.toml`.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let file: ProfileFile =
            toml::from_str(text).map_err(|error| ProfileError::Syntax(Box::new(error)))?;
        let mut profile = Self { x86_64: RuleTable::new(), aarch64: RuleTable::new() };
        for (index, entry) in file.allow.iter().enumerate() {
            let added = profile.add_allow(entry);
            added.map_err(|problem| wrong_entry("allow", index, &entry.names, problem))?;
        }
        for (index, entry) in file.deny.iter().enumerate() {
            let added = profile.add_deny(entry);
            added.map_err(|problem| wrong_entry("deny", index, &entry.names, problem))?;
        }
        Ok(profile)
    }

    pub(super) fn rules_of(&self, arch: Arch) -> &RuleTable {
        match arch {
            Arch::X86_64 => &self.x86_64,
            Arch::Aarch64 => &self.aarch64,
        }
    }

    fn rules_mut(&mut self, arch: Arch) -> &mut RuleTable {
        match arch {
            Arch::X86_64 => &mut self.x86_64,
            Arch::Aarch64 => &mut self.aarch64,
        }
    }

    fn add_allow(&mut self, entry: &AllowEntry) -> Result<(), EntryProblem> {
        for (name, arch, number) in entry.scope().calls()? {
            let rules = self.rules_mut(arch).entry(number).or_default();
            if rules.always_allow() {
                return Err(EntryProblem::NeverCounts { name });
            }
            rules.allow.push(AllowRule { conditions: entry.scope().conditions()? });
        }
        Ok(())
    }

    fn add_deny(&mut self, entry: &DenyEntry) -> Result<(), EntryProblem> {
        for (name, arch, number) in entry.scope().calls()? {
            let rules = self.rules_mut(arch).entry(number).or_default();
            if rules.always_allow() || rules.deny.iter().any(|rule| rule.conditions.is_empty()) {
                return Err(EntryProblem::NeverCounts { name });
            }
            rules.deny.push(DenyRule {
                conditions: entry.scope().conditions()?,
                answer: Answer {
                    errno: entry.errno.number(),
                    reporting: if entry.quiet { Reporting::Quiet } else { Reporting::Reported },
                },
            });
        }
        Ok(())
    }
}

impl CallRules {
    fn always_allow(&self) -> bool {
        self.allow.iter().any(|rule| rule.conditions.is_empty())
    }
}

fn wrong_entry(
    list: &'static str,
    index: usize,
    names: &[String],
    problem: EntryProblem,
) -> ProfileError {
    ProfileError::Entry { list, position: index + 1, names: names.join(", "), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problem that refuses a profile of this text.
    fn problem(text: &str) -> EntryProblem {
        match Profile::parse(text) {
            Err(ProfileError::Entry { problem, .. }) => problem,
            other => panic!("expected a wrong entry, got {other:?}"),
        }
    }

    #[test]
    fn every_call_that_an_architecture_has_is_decided_by_the_builtin_profile() {
        let profile = Profile::builtin();
        for arch in Arch::ALL {
            let undecided: Vec<_> = (0..1024)
                .filter(|number| !profile.rules_of(arch).contains_key(number))
                .filter_map(|number| arch.name_of(number))
                .collect();
            assert!(undecided.is_empty(), "{arch:?} says nothing of {undecided:?}");
        }
    }

    #[test]
    fn every_call_that_may_be_denied_says_how_in_the_builtin_profile() {
        let profile = Profile::builtin();
        for arch in Arch::ALL {
            for (number, rules) in profile.rules_of(arch) {
                let answered = rules.deny.iter().any(|rule| rule.conditions.is_empty());
                assert!(rules.always_allow() || answered, "{arch:?} {:?}", arch.name_of(*number));
            }
        }
    }

    #[test]
    fn a_name_that_one_architecture_lacks_is_refused_with_entry_name_and_architecture() {
        let text = r#"
            [[allow]]
            names = ["read"]
            reason = "files"
            [[allow]]
            names = ["openat", "open"]
            reason = "files"
        "#;
        let error = Profile::parse(text).expect_err("open is missing on aarch64");
        assert_eq!(error.to_string(), "allow entry 2 (openat, open) of the profile is wrong");
        let expected = EntryProblem::UnknownName { name: "open".into(), arch: "aarch64" };
        assert_eq!(problem(text), expected);
        let source = std::error::Error::source(&error).expect("the problem is the source");
        assert!(source.to_string().starts_with("aarch64 has no system call named `open`"));
    }

    #[test]
    fn entries_without_effect_are_refused() {
        assert_eq!(problem("[[allow]]\nnames = []\nreason = 'x'"), EntryProblem::NoNames);
        assert_eq!(problem("[[allow]]\nnames = ['read']\nreason = ' '"), EntryProblem::NoReason);
        let nowhere = "[[allow]]\nnames = ['read']\nreason = 'x'\narch = []";
        assert_eq!(problem(nowhere), EntryProblem::NoArch);
        let twice = "[[allow]]\nnames = ['read', 'read']\nreason = 'x'";
        assert_eq!(problem(twice), EntryProblem::NeverCounts { name: "read".into() });
        let allowed_and_denied = "[[allow]]\nnames = ['read']\nreason = 'x'\n
            [[deny]]\nnames = ['read']\nreason = 'x'\nerrno = 'EPERM'";
        assert_eq!(problem(allowed_and_denied), EntryProblem::NeverCounts { name: "read".into() });
    }

    #[test]
    fn conditions_that_cannot_hold_are_refused() {
        let when = |condition: &str| {
            problem(&format!("[[allow]]\nnames = ['read']\nreason = 'x'\nwhen = [{condition}]"))
        };
        assert_eq!(
            when("{ argument = 6, is = { A = 1 } }"),
            EntryProblem::NoSuchArgument { argument: 6 }
        );
        assert_eq!(when("{ argument = 0 }"), EntryProblem::NoValues { argument: 0 });
        assert_eq!(when("{ argument = 0, is = {} }"), EntryProblem::NoValues { argument: 0 });
        let both = when("{ argument = 0, is = { A = 1 }, is_not = { B = 2 } }");
        assert_eq!(both, EntryProblem::NoValues { argument: 0 });
        let outside = EntryProblem::ValueOutsideMask { value: "A".into(), argument: 0 };
        assert_eq!(when("{ argument = 0, mask = 0xf, is = { A = 16 } }"), outside);
        assert_eq!(when("{ argument = 0, is = { A = 0x1_0000_0000 } }"), outside);
    }

    #[test]
    fn unknown_fields_and_values_are_refused_by_name() {
        for (text, word) in [
            ("[[allow]]\nnames = ['read']\nreason = 'x'\nreasons = 'y'", "reasons"),
            ("[[deny]]\nnames = ['read']\nreason = 'x'\nerrno = 'EWRONG'", "EWRONG"),
            ("[[permit]]\nnames = ['read']\nreason = 'x'", "permit"),
            ("[[allow]]\nnames = ['read']", "reason"),
        ] {
            let error = Profile::parse(text).expect_err("the text is wrong");
            let source = std::error::Error::source(&error).expect("the cause is kept");
            assert!(source.to_string().contains(word), "{source}");
        }
    }
}
