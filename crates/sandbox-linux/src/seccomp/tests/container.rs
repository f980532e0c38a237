//! The profiles for container runtimes, interpreted as a runtime does, must decide like the profile
//! itself.

use std::collections::HashMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{Arch, ContainerFilter, Profile, Verdict};
use super::equivalence::argument_lists;

const FILTERS: [ContainerFilter; 2] = [ContainerFilter::Alone, ContainerFilter::AroundAgent];

/// The outcome of a call: the action, and its error number.
type Judgement<'a> = (&'a str, Option<u64>);

/// The rules of a document for one architecture, by call name.
struct Rules<'a> {
    default: Judgement<'a>,
    by_name: HashMap<&'a str, Vec<Rule<'a>>>,
}

#[derive(Clone)]
struct Rule<'a> {
    /// Argument, mask and value.
    compared: Vec<(usize, u64, u64)>,
    judgement: Judgement<'a>,
}

impl<'a> Rules<'a> {
    fn read(document: &'a Value, arch: &str) -> Self {
        let default = judgement(document, "defaultAction", "defaultErrnoRet");
        let mut by_name: HashMap<&str, Vec<Rule<'_>>> = HashMap::new();
        for entry in document["syscalls"].as_array().unwrap() {
            let included = entry["includes"]["arches"].as_array();
            if included.is_some_and(|arches| !arches.contains(&json!(arch))) {
                continue;
            }
            for name in entry["names"].as_array().unwrap() {
                by_name.entry(name.as_str().unwrap()).or_default().push(Rule::read(entry));
            }
        }
        Self { default, by_name }
    }

    fn judge(&self, name: &str, arguments: [u64; 6]) -> Judgement<'a> {
        let rules = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let mut holding = rules.iter().filter(|rule| rule.holds(arguments));
        let found = holding.next();
        // Runtimes do not say which of two counts.
        assert!(holding.next().is_none(), "{name} {arguments:x?} has more than one rule");
        found.map_or(self.default, |rule| rule.judgement)
    }
}

impl<'a> Rule<'a> {
    fn read(entry: &'a Value) -> Self {
        let mut compared: Vec<(usize, u64, u64)> = Vec::new();
        for comparison in entry["args"].as_array().into_iter().flatten() {
            assert_eq!(comparison["op"], "SCMP_CMP_MASKED_EQ");
            let number = |name: &str| comparison[name].as_u64().unwrap();
            let argument = usize::try_from(number("index")).unwrap();
            // Runtimes take two comparisons of one argument for alternatives.
            let is_first = compared.iter().all(|(other, ..)| *other != argument);
            assert!(is_first, "{entry} compares an argument twice");
            compared.push((argument, number("value"), number("valueTwo")));
        }
        Self { compared, judgement: judgement(entry, "action", "errnoRet") }
    }

    fn holds(&self, arguments: [u64; 6]) -> bool {
        self.compared.iter().all(|&(argument, mask, value)| arguments[argument] & mask == value)
    }
}

fn judgement<'a>(value: &'a Value, name: &str, name_of_errno: &str) -> Judgement<'a> {
    (value[name].as_str().unwrap(), value[name_of_errno].as_u64())
}

/// What the profile decides, in the same form.
fn expected(
    profile: &Profile,
    filter: ContainerFilter,
    arch: Arch,
    number: u32,
    arguments: [u64; 6],
) -> Judgement<'static> {
    let low = |index: usize| arguments[index] & 0xffff_ffff;
    let is_needed = match (arch.name_of(number), filter) {
        // Dropping a capability from the bounding set.
        (Some("prctl"), _) => low(0) == 24,
        // A filter with a listener.
        (Some("seccomp"), ContainerFilter::AroundAgent) => low(0) == 1 && low(1) == 8,
        _ => false,
    };
    match profile.verdict(arch, number, arguments) {
        _ if is_needed => ("SCMP_ACT_ALLOW", None),
        Verdict::Allow => ("SCMP_ACT_ALLOW", None),
        Verdict::Deny { quiet: false, .. } if filter == ContainerFilter::AroundAgent => {
            ("SCMP_ACT_TRACE", None)
        }
        Verdict::Deny { errno, .. } => ("SCMP_ACT_ERRNO", Some(errno.unsigned_abs().into())),
    }
}

fn go_name(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "amd64",
        Arch::Aarch64 => "arm64",
    }
}

/// libseccomp's name for a call, where it is not the kernel's.
fn spelling(arch: Arch, number: u32) -> &'static str {
    match arch.name_of(number) {
        Some("fstatat") => "newfstatat",
        name => name.unwrap_or("a number without a name"),
    }
}

#[test]
fn both_documents_judge_every_call_as_the_profile_does() {
    let profile = Profile::builtin();
    let mut compared = 0_u32;
    for filter in FILTERS {
        let docker = profile.docker_json(filter);
        for arch in Arch::ALL {
            let oci = profile.oci_json(filter, arch);
            let documents =
                [Rules::read(&docker, go_name(arch)), Rules::read(&oci, "not in use here")];
            for number in 0..600 {
                for arguments in argument_lists(&profile, arch, number) {
                    let expected = expected(&profile, filter, arch, number, arguments);
                    for rules in &documents {
                        let found = rules.judge(spelling(arch, number), arguments);
                        assert_eq!(found, expected, "{filter:?} {arch:?} {number} {arguments:x?}");
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 100_000, "only {compared} calls were compared");
}

#[test]
fn the_documents_have_the_fields_that_runtimes_require() {
    let profile = Profile::builtin();
    let alone = profile.docker_json(ContainerFilter::Alone);
    assert_eq!(alone["defaultAction"], "SCMP_ACT_ERRNO");
    assert_eq!(alone["defaultErrnoRet"], libc::ENOSYS);
    assert_eq!(
        alone["archMap"],
        json!([
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ])
    );
    // Calls without namespaces, as everybody writes it, and without a shared table of descriptors.
    let clone = json!([
        {"index": 0, "op": "SCMP_CMP_MASKED_EQ", "value": 0x7e03_0400, "valueTwo": 0},
    ]);
    let entries = alone["syscalls"].as_array().unwrap();
    let clone = entries.iter().find(|entry| entry["args"] == clone).unwrap();
    assert_eq!((&clone["names"], &clone["action"]), (&json!(["clone"]), &json!("SCMP_ACT_ALLOW")));
    // Not left to the default, for which some daemons have another error: a libc that gets that one makes no threads.
    let rules = Rules::read(&alone, "amd64");
    let by_name = &rules.by_name["clone3"];
    assert_eq!(by_name.len(), 1);
    assert_eq!(by_name[0].judgement, ("SCMP_ACT_ERRNO", Some(38)));
    // Docker takes one kind of list of architectures or the other.
    assert!(alone.get("architectures").is_none());
    let around = profile.oci_json(ContainerFilter::AroundAgent, Arch::X86_64);
    assert_eq!(around["architectures"], json!(["SCMP_ARCH_X86_64", "SCMP_ARCH_X32"]));
    assert!(around.get("archMap").is_none());
    // An empty list is not the same as none: then runtimes lift mitigations.
    assert_eq!(around["flags"], json!([]));
}

/// Conditions on the first two arguments, as a profile writes them.
fn conditions() -> impl Strategy<Value = String> {
    let condition = (0..2_usize, any::<u32>(), prop::bool::ANY, prop::bool::ANY).prop_flat_map(
        |(argument, mask, is_long, is_not)| {
            // At most so many bits count that the pieces stay few.
            let mask = u64::from(mask & 0x7007) << if is_long { 30 } else { 0 };
            prop::collection::btree_set(any::<u64>(), 1..4).prop_map(move |values| {
                let (width, kind) = (
                    if is_long { "long" } else { "int" },
                    if is_not { "is_not" } else { "is" },
                );
                let values = values.iter().enumerate();
                let values: Vec<_> =
                    values.map(|(index, value)| format!("V{index} = {}", value & mask & i64::MAX as u64)).collect();
                format!(
                    "{{ argument = {argument}, width = '{width}', mask = {mask}, {kind} = {{ {} }} }}",
                    values.join(", ")
                )
            })
        },
    );
    prop::collection::vec(condition, 1..3).prop_map(|list| list.join(", "))
}

fn argument() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (any::<u64>(), 0..35_u32).prop_map(|(value, up)| (value & 0x7007) << up)
    ]
}

/// How a profile is written down for a use and an architecture.
type Written = (ContainerFilter, Arch, Rules<'static>);

/// The shipped profile, and all ways in which it is written down.
static SHIPPED: LazyLock<(Profile, Vec<Written>)> = LazyLock::new(|| {
    static DOCUMENTS: LazyLock<[Value; 2]> =
        LazyLock::new(|| FILTERS.map(|filter| Profile::builtin().docker_json(filter)));
    let documents = FILTERS.into_iter().zip(DOCUMENTS.iter());
    let rules = documents.flat_map(|(filter, document)| {
        Arch::ALL.map(|arch| (filter, arch, Rules::read(document, go_name(arch))))
    });
    (Profile::builtin(), rules.collect())
});

proptest! {
    #[test]
    fn a_profile_of_any_conditions_is_written_down_truly(
        allow in prop::collection::vec(conditions(), 0..3),
        deny in prop::collection::vec(conditions(), 0..3),
        arguments in prop::collection::vec([argument(), argument()], 64),
    ) {
        use std::fmt::Write as _;
        let mut text = String::new();
        for when in &allow {
            let _ = writeln!(text, "[[allow]]\nnames = ['read']\nreason = 'x'\nwhen = [{when}]");
        }
        for (when, errno) in deny.iter().zip(["EACCES", "EINVAL"]) {
            let _ = writeln!(text, "[[deny]]\nnames = ['read']\nreason = 'x'\nerrno = '{errno}'\nwhen = [{when}]");
        }
        let profile = Profile::parse(&text).unwrap();
        let number = Arch::X86_64.number_of("read").unwrap();
        let document = profile.oci_json(ContainerFilter::Alone, Arch::X86_64);
        let rules = Rules::read(&document, "not in use here");
        for [first, second] in arguments {
            let arguments = [first, second, 0, 0, 0, 0];
            let expected = expected(&profile, ContainerFilter::Alone, Arch::X86_64, number, arguments);
            prop_assert_eq!(rules.judge("read", arguments), expected);
        }
    }

    #[test]
    fn the_shipped_profile_is_written_down_truly_for_any_arguments(
        number in 0..600_u32,
        arguments in prop::collection::vec(prop::array::uniform6(any::<u64>()), 4),
        small in prop::collection::vec((0..70_u64, 0..20_u64), 16),
        high in any::<u32>(),
    ) {
        let (profile, rules) = &*SHIPPED;
        let high = u64::from(high) << 32;
        let small = small.into_iter().map(|(a, b)| [a | high, b | high, b, a | high, 0, 0]);
        for arguments in arguments.into_iter().chain(small) {
            for (filter, arch, rules) in rules {
                let found = rules.judge(spelling(*arch, number), arguments);
                prop_assert_eq!(found, expected(profile, *filter, *arch, number, arguments));
            }
        }
    }
}
