//! What the comment at the top of an attack says about it. The format is described in
//! `attacks/README.md`; a mistake is an error that names the file and the line.

use std::str::FromStr;

use sandbox_core::{Limits, NetworkPolicy, Protection, Status, parse_duration};

use super::canaries::Placeholder;

/// A mistake in the header of an attack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("attacks/{file}:{line}: {reason}")]
pub struct HeaderError {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) reason: String,
}

/// The header of an attack, checked.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) title: String,
    pub(super) how: String,
    /// The walls to take away so that it succeeds; none if there is no such run.
    pub(super) without: Vec<Protection>,
    pub(super) expect: Expectation,
    pub(super) breach: Breach,
    pub(super) violations: Vec<String>,
    pub(super) limits: AttackLimits,
    pub(super) args: Vec<String>,
    pub(super) args_in_source: bool,
    pub(super) stdin: String,
    pub(super) collect: Vec<String>,
    pub(super) only_collected: Option<Vec<String>>,
    pub(super) then: Option<String>,
    pub(super) optional: Option<String>,
    pub(super) root_only: bool,
}

/// What the run with every wall up gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expectation {
    /// A line `HELD`.
    Held,
    /// This status.
    Status(Status),
}

/// How the run without the wall shows that the attack worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Breach {
    /// A line `BREACH`.
    Says,
    /// This status.
    Status(Status),
    /// This text somewhere in the output.
    Shows(String),
    /// The content of the host's file somewhere in the output.
    ShowsHostSecret,
}

/// What an attack is given.
#[derive(Clone, Debug)]
pub(super) struct AttackLimits {
    pub(super) run: Limits,
    pub(super) compile: Limits,
    pub(super) network: NetworkPolicy,
}

/// One `key: value` of a header, with the line it begins on.
struct Entry {
    line: usize,
    key: String,
    value: String,
}

impl Header {
    /// Reads the header of an attack.
    pub(super) fn parse(file: &str, source: &str) -> Result<Self, HeaderError> {
        let mut entries = Entries::read(file, source)?;
        let title = entries.required("title")?;
        let how = entries.required("how")?;
        let without = entries.required("without")?;
        let without = match without.value.as_str() {
            "none" => {
                entries.required("why-no-pair")?;
                Vec::new()
            }
            _ => entries.each(&without, ',', |name| name.parse::<Protection>())?,
        };
        let expect = entries.required("expect")?;
        let header = Self {
            title: title.value,
            how: how.value,
            without,
            expect: entries.read_value(&expect, parse_expectation)?,
            breach: match entries.take("breach") {
                Some(entry) => entries.read_value(&entry, parse_breach)?,
                None => Breach::Says,
            },
            violations: entries.list("violations"),
            limits: match entries.take("limits") {
                Some(entry) => entries.read_value(&entry, AttackLimits::parse)?,
                None => AttackLimits::default(),
            },
            args: entries.args()?,
            args_in_source: entries.yes("args-in-source")?,
            stdin: entries.text("stdin").unwrap_or_default(),
            collect: entries.list("collect"),
            only_collected: entries
                .take("only-collected")
                .map(|entry| split_list(&entry.value)),
            then: entries.text("then"),
            optional: entries.text("optional"),
            root_only: entries.yes("root-only")?,
        };
        entries.refuse_rest()?;
        Ok(header)
    }

    /// Reads the header of a second program, which has nothing but arguments.
    pub(super) fn parse_args(file: &str, source: &str) -> Result<Vec<String>, HeaderError> {
        let mut entries = Entries::read(file, source)?;
        let args = entries.args()?;
        entries.refuse_rest()?;
        Ok(args)
    }
}

/// The entries that were not asked for yet.
struct Entries<'a> {
    file: &'a str,
    entries: Vec<Entry>,
}

impl<'a> Entries<'a> {
    fn read(file: &'a str, source: &str) -> Result<Self, HeaderError> {
        let is_c = std::path::Path::new(file)
            .extension()
            .is_some_and(|extension| extension == "c");
        let mark = if is_c { "//" } else { "#" };
        let mut entries = Self {
            file,
            entries: Vec::new(),
        };
        for (line, text) in (1..).zip(source.lines()) {
            let Some(text) = text.strip_prefix(mark) else {
                break;
            };
            if text.starts_with("  ") {
                match entries.entries.last_mut() {
                    Some(entry) => entry.value = format!("{} {}", entry.value, text.trim()),
                    None => return Err(entries.error(line, "there is nothing to go on with")),
                }
                continue;
            }
            let Some((key, value)) = text.split_once(':') else {
                return Err(entries.error(line, "this line is not 'key: value'"));
            };
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            if entries.entries.iter().any(|entry| entry.key == key) {
                return Err(entries.error(line, format!("there are two '{key}'")));
            }
            entries.entries.push(Entry { line, key, value });
        }
        Ok(entries)
    }

    fn error(&self, line: usize, reason: impl Into<String>) -> HeaderError {
        HeaderError {
            file: self.file.to_owned(),
            line,
            reason: reason.into(),
        }
    }

    fn take(&mut self, key: &str) -> Option<Entry> {
        let place = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(place))
    }

    fn text(&mut self, key: &str) -> Option<String> {
        self.take(key).map(|entry| entry.value)
    }

    fn required(&mut self, key: &str) -> Result<Entry, HeaderError> {
        self.take(key)
            .filter(|entry| !entry.value.is_empty())
            .ok_or_else(|| self.error(1, format!("there is no '{key}'")))
    }

    fn yes(&mut self, key: &str) -> Result<bool, HeaderError> {
        match self.take(key) {
            None => Ok(false),
            Some(entry) if entry.value == "yes" => Ok(true),
            Some(entry) => Err(self.error(entry.line, format!("'{key}' can only be yes"))),
        }
    }

    fn list(&mut self, key: &str) -> Vec<String> {
        self.take(key)
            .map(|entry| split_list(&entry.value))
            .unwrap_or_default()
    }

    fn args(&mut self) -> Result<Vec<String>, HeaderError> {
        let Some(entry) = self.take("args") else {
            return Ok(Vec::new());
        };
        self.each(&entry, ' ', |arg| match arg.strip_prefix('{') {
            Some(_) => Placeholder::from_str(arg).map(|_| arg.to_owned()),
            None => Ok(arg.to_owned()),
        })
    }

    fn each<T, E: ToString>(
        &self,
        entry: &Entry,
        separator: char,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Vec<T>, HeaderError> {
        let parts = entry.value.split(separator).map(str::trim);
        parts
            .map(|part| read(part).map_err(|error| self.error(entry.line, error.to_string())))
            .collect()
    }

    fn read_value<T>(
        &self,
        entry: &Entry,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, HeaderError> {
        read(&entry.value).map_err(|reason| self.error(entry.line, reason))
    }

    fn refuse_rest(&self) -> Result<(), HeaderError> {
        match self.entries.first() {
            Some(entry) => {
                Err(self.error(entry.line, format!("'{}' is not a key here", entry.key)))
            }
            None => Ok(()),
        }
    }
}

fn split_list(value: &str) -> Vec<String> {
    value
        .split(',')
        .map(|part| part.trim().to_owned())
        .collect()
}

fn parse_expectation(text: &str) -> Result<Expectation, String> {
    match text {
        "held" => Ok(Expectation::Held),
        _ => parse_status(text).map(Expectation::Status),
    }
}

fn parse_breach(text: &str) -> Result<Breach, String> {
    if text == "shows-host-secret" {
        return Ok(Breach::ShowsHostSecret);
    }
    match text.strip_prefix("shows ") {
        Some(shown) => Ok(Breach::Shows(shown.trim().to_owned())),
        None => parse_status(text).map(Breach::Status),
    }
}

fn parse_status(text: &str) -> Result<Status, String> {
    let known = [
        Status::Completed,
        Status::RuntimeError,
        Status::CompileError,
        Status::Timeout,
        Status::MemoryLimit,
        Status::OutputLimit,
        Status::Error,
    ];
    known
        .into_iter()
        .find(|status| status.name() == text)
        .ok_or_else(|| format!("'{text}' is not how an attack can end"))
}

impl Default for AttackLimits {
    fn default() -> Self {
        Self {
            run: Limits::run(),
            compile: Limits::compile(),
            network: NetworkPolicy::None,
        }
    }
}

impl AttackLimits {
    fn parse(text: &str) -> Result<Self, String> {
        let mut limits = Self::default();
        for pair in text.split_whitespace() {
            let set = match pair.split_once('=') {
                Some((name, value)) => limits.set(name, value),
                None => Err("it is not 'name=value'".into()),
            };
            set.map_err(|error| format!("'{pair}': {error}"))?;
        }
        Ok(limits)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Box<dyn std::error::Error>> {
        let (run, compile) = (self.run.clone(), self.compile.clone());
        match name {
            "memory" => self.run = run.with_memory(value.parse()?)?,
            "pids" => self.run = run.with_pids(value.parse()?)?,
            "disk" => self.run = run.with_disk(value.parse()?)?,
            "cpus" => self.run = run.with_cpus(value.parse()?)?,
            "timeout" => self.run = run.with_wall_time(parse_duration(value)?)?,
            "cpu-time" => self.run = run.with_cpu_time(parse_duration(value)?)?,
            "open-files" => self.run = run.with_open_files(value.parse()?)?,
            "network" => self.network = value.parse()?,
            "compile-memory" => self.compile = compile.with_memory(value.parse()?)?,
            "compile-timeout" => self.compile = compile.with_wall_time(parse_duration(value)?)?,
            // What a compiler prints is output too.
            "output" => {
                self.run = run.with_output(value.parse()?)?;
                self.compile = compile.with_output(value.parse()?)?;
            }
            _ => return Err("there is no such limit".into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "# title: T\n# how: H\n# without: seccomp, landlock\n# expect: held\n";

    fn refusal(header: &str) -> String {
        Header::parse("escape/x.py", header)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_header_is_read_up_to_the_first_line_of_code() {
        let source = format!(
            "{PLAIN}# args: {{host_file}} plain\n# limits: memory=64M output=2K timeout=2s\n\
             # breach: shows Permission\n#   denied\nimport os\n# nonsense\n"
        );
        let header = Header::parse("escape/x.py", &source).unwrap();
        assert_eq!(
            header.without,
            [Protection::Seccomp, Protection::Landlock]
        );
        assert_eq!(header.expect, Expectation::Held);
        assert_eq!(header.breach, Breach::Shows("Permission denied".into()));
        assert_eq!(header.args, ["{host_file}", "plain"]);
        assert_eq!(header.limits.run.memory().as_u64(), 64 << 20);
        assert_eq!(header.limits.compile.output().as_u64(), 2048);
    }

    #[test]
    fn a_mistake_names_the_file_and_the_line() {
        let with = |line: &str| refusal(&format!("{PLAIN}{line}\n"));
        assert_eq!(
            with("# argz: x"),
            "attacks/escape/x.py:5: 'argz' is not a key here"
        );
        assert_eq!(
            with("# args: {hostfile}"),
            "attacks/escape/x.py:5: '{hostfile}' is not a placeholder"
        );
        assert_eq!(
            with("# limits: memory=64Q"),
            "attacks/escape/x.py:5: 'memory=64Q': '64Q' is not a size: write a whole number with K, \
             M or G, such as 64K, 128M or 1G"
        );
        assert_eq!(
            with("# root-only: perhaps"),
            "attacks/escape/x.py:5: 'root-only' can only be yes"
        );
        assert_eq!(
            with("# a remark"),
            "attacks/escape/x.py:5: this line is not 'key: value'"
        );
        assert_eq!(
            with("# how: again"),
            "attacks/escape/x.py:5: there are two 'how'"
        );
        assert_eq!(
            refusal("# title: T\n# how: H\n# expect: held\nx"),
            "attacks/escape/x.py:1: there is no 'without'"
        );
    }

    #[test]
    fn an_attack_without_a_pair_says_why() {
        let lonely = PLAIN.replace("seccomp, landlock", "none");
        assert!(refusal(&lonely).ends_with("there is no 'why-no-pair'"));
        let explained = format!("{lonely}# why-no-pair: because\n");
        let header = Header::parse("escape/x.py", &explained).unwrap();
        assert!(header.without.is_empty());
    }
}
