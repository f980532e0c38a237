use std::collections::BTreeSet;

use sandbox_core::Protection;

use super::canaries::Placeholder;
use super::entries::HeaderError;
use super::header::Header;

/// A class, and the names and texts of its files.
type Folder = (&'static str, &'static [(&'static str, &'static str)]);

/// Every folder of `attacks`, collected by the build script.
const TABLE: &[Folder] = include!(concat!(env!("OUT_DIR"), "/attacks.rs"));

/// A hostile program and what its header says about it.
#[derive(Clone, Debug)]
pub struct Attack {
    pub(super) class: &'static str,
    pub(super) program: Program,
    /// A second program that runs afterwards in a fresh sandbox and is the one that is judged.
    pub(super) then: Option<Program>,
    pub(super) header: Header,
}

/// A program, with placeholders in its arguments and perhaps in its text.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) file: &'static str,
    pub(super) source: &'static str,
    pub(super) args: Vec<String>,
}

/// Every attack of this build, ordered by class and name.
pub fn all() -> Result<Vec<Attack>, HeaderError> {
    let firsts = files().filter(|(_, file, _)| !file.starts_with('_'));
    firsts.map(|(class, file, source)| Attack::read(class, file, source)).collect()
}

/// Class, name and text of every file.
fn files() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    TABLE
        .iter()
        .flat_map(|(class, files)| files.iter().map(|(file, source)| (*class, *file, *source)))
}

impl Attack {
    fn read(
        class: &'static str,
        file: &'static str,
        source: &'static str,
    ) -> Result<Self, HeaderError> {
        let path = format!("{class}/{file}");
        let header = Header::parse(&path, source)?;
        let then = match &header.then {
            None => None,
            Some(name) => Some(second(class, name).ok_or_else(|| HeaderError {
                file: path.clone(),
                line: 1,
                reason: format!("there is no '{name}' beside it"),
            })??),
        };
        let program = Program { file, source, args: header.args.clone() };
        Ok(Self { class, program, then, header })
    }

    /// Its class: the name of its folder.
    pub fn class(&self) -> &str {
        self.class
    }

    /// Its file's name without the extension.
    pub fn name(&self) -> &str {
        let file = self.program.file;
        file.rsplit_once('.').map_or(file, |(name, _)| name)
    }

    /// One line for tables.
    pub fn title(&self) -> &str {
        &self.header.title
    }

    /// How it works and what it would gain.
    pub fn how(&self) -> &str {
        &self.header.how
    }

    /// The protections that stop it, one behind the other; empty if a run without them makes no sense.
    pub fn protections(&self) -> &[Protection] {
        &self.header.without
    }

    /// The canaries that it needs.
    pub(super) fn placeholders(&self) -> BTreeSet<Placeholder> {
        let programs = std::iter::once(&self.program).chain(&self.then);
        let mut found = BTreeSet::new();
        for program in programs {
            let in_source = self.header.args_in_source.then_some(program.source);
            let texts = program.args.iter().map(String::as_str).chain(in_source);
            for text in texts {
                found.extend(Placeholder::ALL.iter().filter(|it| it.is_in(text)));
            }
        }
        found
    }
}

fn second(class: &'static str, name: &str) -> Option<Result<Program, HeaderError>> {
    let (_, file, source) =
        files().find(|(its_class, file, _)| *its_class == class && *file == name)?;
    let args = Header::parse_args(&format!("{class}/{file}"), source);
    Some(args.map(|args| Program { file, source, args }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_is_well_formed_and_no_name_is_used_twice() {
        let attacks = all().unwrap();
        let names: BTreeSet<_> =
            attacks.iter().map(|attack| (attack.class(), attack.name())).collect();
        assert_eq!(names.len(), attacks.len());
        assert!(attacks.len() > 100, "only {} attacks", attacks.len());
    }

    #[test]
    fn every_second_program_belongs_to_an_attack() {
        let attacks = all().unwrap();
        for (class, file, _) in files().filter(|(_, file, _)| file.starts_with('_')) {
            let mut seconds = attacks
                .iter()
                .filter_map(|attack| Some((attack.class, attack.then.as_ref()?.file)));
            assert!(
                seconds.any(|second| second == (class, file)),
                "{class}/{file} belongs to none"
            );
        }
    }

    #[test]
    fn most_attacks_come_in_pairs() {
        let attacks = all().unwrap();
        let alone = attacks.iter().filter(|attack| attack.protections().is_empty());
        let alone: Vec<_> = alone.map(Attack::name).collect();
        assert!(alone.len() * 10 <= attacks.len(), "alone: {alone:?}");
    }
}
