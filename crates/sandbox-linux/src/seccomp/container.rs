//! The profile in the words of container runtimes: what `docker run --security-opt seccomp=FILE` takes, and `linux.seccomp` of
//! the OCI runtime specification.
//!
//! Both formats leave the making of the program to libseccomp, which knows neither order between rules nor "none of
//! these": `blocks` turns our rules into some that need neither. What else is different:
//!
//! * A call through another ABI (32 bits, x32) kills the thread. Ours kills the process for the first, and answers
//!   ENOSYS for the second.
//! * A call that libseccomp is too old to know the name of has the default outcome: it is refused.
//! * The runtime does its own last steps behind the filter, so that they are allowed to the program as well.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::arch::Arch;
use super::blocks::{Block, Rule, cells};
use super::profile::Profile;
use super::rules::{Answer, CallRules, Condition, Membership, Reporting, Width};

/// What a filter is for that a container runtime puts in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerFilter {
    /// It is all there is. Every call has the outcome that it has in the native walls without a supervisor: it is allowed,
    /// or fails with the error number that the profile says.
    Alone,
    /// It stands around the agent, which puts the native filter in force for the program and answers its denied calls.
    ///
    /// Of two filters the kernel takes the stricter answer, and to hand a call to the agent is weaker than to refuse it. So what
    /// the agent is to hear of gets an answer that is weaker still and lets nothing through either: a tracer is asked, there is
    /// none, and the call fails with ENOSYS. That is what becomes of it in a process without the native filter.
    AroundAgent,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Allow,
    Errno(i32),
    /// See [`ContainerFilter::AroundAgent`].
    Nobody,
}

/// A rule as the formats have it, but for the names it counts for.
type RuleKey = (Outcome, Vec<Block>);
type RuleList = BTreeMap<RuleKey, BTreeSet<&'static str>>;

impl Profile {
    /// The filter as Docker takes it, for daemons on every architecture.
    pub fn docker_json(&self, filter: ContainerFilter) -> Value {
        let mut rules: BTreeMap<(RuleKey, &str), BTreeSet<Arch>> = BTreeMap::new();
        for arch in Arch::ALL {
            for (key, names) in self.runtime_rules(filter, arch) {
                for name in names {
                    rules.entry((key.clone(), name)).or_default().insert(arch);
                }
            }
        }
        // Names that need the same rule on the same architectures stand in one entry.
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

    /// The filter as `linux.seccomp` of a bundle, for one architecture.
    pub fn oci_json(&self, filter: ContainerFilter, arch: Arch) -> Value {
        let rules = self.runtime_rules(filter, arch);
        let entries = rules.iter().map(|(key, names)| entry(key, names)).collect();
        let architectures = runtime_names(filter, arch).iter().map(|name| json!(name)).collect();
        document(filter, "architectures", architectures, entries)
    }

    /// All rules. Where the default is that a tracer is asked, those that say so are left out.
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
                // Docker 20.10 has EPERM for the default whatever is said, so that ENOSYS is said for each.
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
    /// The rules in the order in which they count.
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

    /// What becomes of a call that no rule speaks of: a number without a name.
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
            // Unless a container may get no new privileges, runc drops capabilities behind the filter. It would take an error
            // for "there is no such capability", and the program would keep it. To drop one can do no harm.
            ("prctl", _) => vec![vec![is(0, PR_CAPBSET_DROP)]],
            // The agent hears of denied calls. In the program's own filter this is left out.
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
    // Without this list runtimes lift processor mitigations from what they start.
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

/// The architecture in the words of runtimes, and what else is let through to the rules. Calls of x32 are refused, and named, by the
/// native filter; without that filter they must not get so far.
fn runtime_names(filter: ContainerFilter, arch: Arch) -> &'static [&'static str] {
    match (arch, filter) {
        (Arch::X86_64, ContainerFilter::Alone) => &["SCMP_ARCH_X86_64"],
        (Arch::X86_64, ContainerFilter::AroundAgent) => &["SCMP_ARCH_X86_64", "SCMP_ARCH_X32"],
        (Arch::Aarch64, _) => &["SCMP_ARCH_AARCH64"],
    }
}

/// The architecture as Docker's rules name it.
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
