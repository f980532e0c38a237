//! The profile in the formats of container runtimes: `docker run --security-opt seccomp=FILE`, and
//! `linux.seccomp` of the OCI runtime specification.
//!
//! Both formats are compiled by libseccomp, which knows neither an order of rules nor "none of
//! these": `blocks` converts the rules accordingly. Further differences:
//!
//! * A call through another ABI (32 bits, x32) kills the thread. The native filter kills the process
//!   for the first, and answers ENOSYS for the second.
//! * A call whose name libseccomp is too old to know has the default outcome: it is denied.
//! * The runtime takes its last steps after it has installed the filter, so these calls are allowed
//!   to the program as well.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::arch::Arch;
use super::blocks::{Block, Rule, cells};
use super::profile::Profile;
use super::rules::{Answer, CallRules, Condition, Membership, Reporting, Width};

/// The role of a filter that a container runtime installs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerFilter {
    /// The only filter. Every call has the same outcome as in the native backend without a
    /// supervisor: it is allowed, or fails with the profile's error number.
    Alone,
    /// Applies to the agent, which installs the native filter for the program and answers its
    /// denied calls.
    ///
    /// Of two filters the kernel takes the stricter action, and a notification to the agent is less
    /// strict than an error. So denied calls get an action here that is less strict still and
    /// allows nothing either: SECCOMP_RET_TRACE without a tracer, which makes the call fail with
    /// ENOSYS. A process without the native filter gets that error.
    AroundAgent,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Allow,
    Errno(i32),
    /// See [`ContainerFilter::AroundAgent`].
    Nobody,
}

/// A rule of these formats, without the names of its calls.
type RuleKey = (Outcome, Vec<Block>);
type RuleList = BTreeMap<RuleKey, BTreeSet<&'static str>>;

impl Profile {
    /// The filter in Docker's format, for daemons on every architecture.
    pub fn docker_json(&self, filter: ContainerFilter) -> Value {
        let mut rules: BTreeMap<(RuleKey, &str), BTreeSet<Arch>> = BTreeMap::new();
        for arch in Arch::ALL {
            for (key, names) in self.runtime_rules(filter, arch) {
                for name in names {
                    rules.entry((key.clone(), name)).or_default().insert(arch);
                }
            }
        }
        // Names with the same rule on the same architectures share an entry.
        let mut entries: BTreeMap<(RuleKey, BTreeSet<Arch>), BTreeSet<&str>> = BTreeMap::new();
        for ((key, name), arches) in rules {
            entries.entry((key, arches)).or_default().insert(name);
        }
        let entries = entries.into_iter().map(|((key, arches), names)| {
            let mut entry = entry(&key, &names);
            if arches.len() < Arch::ALL.len() {
                let arches: Vec<&str> = arches.into_iter().map(go_name).collect();
                entry["includes"] = json!({"arches": arches});
            }
            entry
        });
        let entries = entries.collect();
        let map = Arch::ALL.iter().map(|arch| {
            let names = runtime_names(filter, *arch);
            json!({"architecture": names[0], "subArchitectures": names[1..]})
        });
        let map = map.collect();
        document(filter, "archMap", map, entries)
    }

    /// The filter as `linux.seccomp` of an OCI bundle, for one architecture.
    pub fn oci_json(&self, filter: ContainerFilter, arch: Arch) -> Value {
        let rules = self.runtime_rules(filter, arch);
        let entries = rules.iter().map(|(key, names)| entry(key, names)).collect();
        let architectures = runtime_names(filter, arch).iter().map(|name| json!(name)).collect();
        document(filter, "architectures", architectures, entries)
    }

    /// All rules. If SECCOMP_RET_TRACE is the default, rules with that action are left out.
    fn runtime_rules(&self, filter: ContainerFilter, arch: Arch) -> RuleList {
        let unlisted = CallRules::default();
        let mut list = RuleList::new();
        for number in 0..=arch.last_number() {
            let Some(name) = arch.name_of(number) else { continue };
            let rules = self.rules_of(arch).get(&number).unwrap_or(&unlisted);
            let own = filter.own_needs(name);
            let own = own.iter().map(|conditions| Rule {
                conditions: conditions.iter().collect(),
                outcome: Outcome::Allow,
            });
            let rules: Vec<_> = own.chain(rules.in_order(filter)).collect();
            for cell in cells(&rules) {
                // Docker 20.10 always uses EPERM as the default, so ENOSYS is given for each call.
                if cell.outcome != Outcome::Nobody {
                    let names = list.entry((cell.outcome, cell.blocks)).or_default();
                    names.insert(spelling(name));
                }
            }
        }
        list
    }
}

impl CallRules {
    /// The rules in the order in which they apply.
    fn in_order(&self, filter: ContainerFilter) -> Vec<Rule<'_, Outcome>> {
        let allow = self.allow.iter().map(|rule| (&rule.conditions[..], Outcome::Allow));
        let deny = self.deny.iter();
        let deny = deny.map(|rule| (&rule.conditions[..], filter.denial(rule.answer)));
        let last: (&[Condition], _) = (&[], filter.denial(Answer::UNLISTED));
        let all = allow.chain(deny).chain([last]);
        all.map(|(conditions, outcome)| Rule { conditions: conditions.iter().collect(), outcome })
            .collect()
    }
}

impl ContainerFilter {
    fn denial(self, answer: Answer) -> Outcome {
        match (self, answer.reporting) {
            (Self::AroundAgent, Reporting::Reported) => Outcome::Nobody,
            (Self::AroundAgent, Reporting::Quiet) | (Self::Alone, _) => {
                Outcome::Errno(answer.errno)
            }
        }
    }

    /// The outcome of a call without a rule: a number without a name.
    fn default_outcome(self) -> Outcome {
        self.denial(Answer::UNKNOWN)
    }

    /// When a call is allowed beyond the profile, as lists of conditions.
    fn own_needs(self, name: &str) -> Vec<Vec<Condition>> {
        const PR_CAPBSET_DROP: u64 = 24;
        const SECCOMP_SET_MODE_FILTER: u64 = 1;
        let is = |argument, value| Condition {
            argument,
            mask: Width::Int.bits(),
            membership: Membership::Is,
            values: BTreeSet::from([value]),
        };
        match (name, self) {
            // Unless a container may get no new privileges, runc drops capabilities after it
            // installs the filter. It would take an error for "no such capability", and the program
            // would keep it. Dropping a capability is harmless.
            ("prctl", _) => vec![vec![is(0, PR_CAPBSET_DROP)]],
            // The agent receives denied calls. The program's own filter leaves this out.
            ("seccomp", Self::AroundAgent) => {
                let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
                vec![vec![is(0, SECCOMP_SET_MODE_FILTER), is(1, listener)]]
            }
            _ => Vec::new(),
        }
    }
}

fn document(filter: ContainerFilter, kind: &str, arches: Vec<Value>, entries: Vec<Value>) -> Value {
    let mut document = action(filter.default_outcome(), "defaultAction", "defaultErrnoRet");
    document[kind] = Value::Array(arches);
    // Without this list, runtimes disable CPU mitigations for what they start.
    document["flags"] = json!([]);
    document["syscalls"] = Value::Array(entries);
    document
}

fn entry((outcome, blocks): &RuleKey, names: &BTreeSet<&str>) -> Value {
    let mut entry = action(*outcome, "action", "errnoRet");
    entry["names"] = json!(names);
    if !blocks.is_empty() {
        let compared = blocks.iter().map(|block| {
            json!({
                "index": block.argument, "op": "SCMP_CMP_MASKED_EQ",
                "value": block.mask, "valueTwo": block.value,
            })
        });
        entry["args"] = compared.collect();
    }
    entry
}

fn action(outcome: Outcome, name: &str, name_of_errno: &str) -> Value {
    match outcome {
        Outcome::Allow => json!({name: "SCMP_ACT_ALLOW"}),
        Outcome::Errno(errno) => json!({name: "SCMP_ACT_ERRNO", name_of_errno: errno}),
        Outcome::Nobody => json!({name: "SCMP_ACT_TRACE"}),
    }
}

/// The architecture's name in OCI runtimes, and the ABIs whose calls reach the rules. The native
/// filter denies and reports calls of x32; without that filter they must not get that far.
fn runtime_names(filter: ContainerFilter, arch: Arch) -> &'static [&'static str] {
    match (arch, filter) {
        (Arch::X86_64, ContainerFilter::Alone) => &["SCMP_ARCH_X86_64"],
        (Arch::X86_64, ContainerFilter::AroundAgent) => &["SCMP_ARCH_X86_64", "SCMP_ARCH_X32"],
        (Arch::Aarch64, _) => &["SCMP_ARCH_AARCH64"],
    }
}

/// The architecture's name in Docker's rules.
fn go_name(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "amd64",
        Arch::Aarch64 => "arm64",
    }
}

/// libseccomp has one name for this call on all architectures.
fn spelling(name: &'static str) -> &'static str {
    if name == "fstatat" { "newfstatat" } else { name }
}
