//! The comment at the top of an attack. The format is described in
//! `attacks/README.md`; a mistake is an error that names the file and the line.

use sandbox_core::{Protection, Status};

use super::entries::{Entries, HeaderError, split_list};
use super::limits::AttackLimits;

/// The header of an attack, checked.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) title: String,
    pub(super) how: String,
    /// Protections to disable so that it succeeds; empty if there is no such run.
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

/// The expected result with every protection enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expectation {
    /// A line `HELD`.
    Held,
    /// This status.
    Status(Status),
}

/// How the run without the protection shows that the attack succeeded.
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
            _ => entries.each(&without, ',', str::parse::<Protection>)?,
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
            only_collected: entries.take("only-collected").map(|entry| split_list(&entry.value)),
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

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "# title: T\n# how: H\n# without: seccomp, landlock\n# expect: held\n";

    fn refusal(header: &str) -> String {
        Header::parse("escape/x.py", header).unwrap_err().to_string()
    }

    #[test]
    fn a_header_is_read_up_to_the_first_line_of_code() {
        let source = format!(
            "{PLAIN}# args: {{host_file}} plain\n# limits: memory=64M output=2K timeout=2s\n\
             # breach: shows Permission\n#   denied\nimport os\n# nonsense\n"
        );
        let header = Header::parse("escape/x.py", &source).unwrap();
        assert_eq!(header.without, [Protection::Seccomp, Protection::Landlock]);
        assert_eq!(header.expect, Expectation::Held);
        assert_eq!(header.breach, Breach::Shows("Permission denied".into()));
        assert_eq!(header.args, ["{host_file}", "plain"]);
        assert_eq!(header.limits.run.memory().as_u64(), 64 << 20);
        assert_eq!(header.limits.compile.output().as_u64(), 2048);
    }

    #[test]
    fn a_mistake_names_the_file_and_the_line() {
        let with = |line: &str| refusal(&format!("{PLAIN}{line}\n"));
        assert_eq!(with("# argz: x"), "attacks/escape/x.py:5: 'argz' is not a key here");
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
        assert_eq!(with("# a remark"), "attacks/escape/x.py:5: this line is not 'key: value'");
        assert_eq!(with("# how: again"), "attacks/escape/x.py:5: there are two 'how'");
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
