//! Answers system calls that the filter denies, as the profile says, and reports each to the supervisor, which counts them
//! by name.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use sandbox_protocol::agent::{AgentEvent, ArgumentCondition, DenyRule, SyscallDenyRules};

use crate::channel::send;
use crate::seccomp::{self, DeniedCall};

/// After this many denied calls each further answer is delayed: answering costs CPU time that is not charged to the program.
const MAX_UNDELAYED_ANSWERS: u64 = 1000;
const ANSWER_DELAY: Duration = Duration::from_millis(1);
/// What a kernel answers that does not have the call.
const ENOSYS: i32 = 38;

/// How denied calls are answered, by their number.
#[derive(Default)]
pub(crate) struct DenyRules(HashMap<u32, Vec<DenyRule>>);

impl DenyRules {
    pub(crate) fn new(rules: &[SyscallDenyRules]) -> Self {
        Self(rules.iter().map(|rules| (rules.syscall, rules.rules.clone())).collect())
    }

    /// The error of the first rule that matches.
    fn errno_for(&self, call: &DeniedCall) -> i32 {
        let rules = self.0.get(&call.syscall);
        let rule = rules.and_then(|rules| rules.iter().find(|rule| matches(rule, call)));
        rule.map_or(ENOSYS, |rule| rule.errno)
    }
}

fn matches(rule: &DenyRule, call: &DeniedCall) -> bool {
    rule.conditions.iter().all(|condition| holds(condition, &call.arguments))
}

fn holds(condition: &ArgumentCondition, arguments: &[u64; 6]) -> bool {
    let index = usize::try_from(condition.argument).unwrap_or(usize::MAX);
    let value = arguments.get(index).copied().unwrap_or(0) & condition.mask;
    condition.values.contains(&value) == condition.is_member
}

/// Receives denied calls from the filter.
pub(crate) struct DenyListener {
    pub(crate) fd: OwnedFd,
    rules: DenyRules,
    count: u64,
}

impl DenyListener {
    pub(crate) fn new(fd: OwnedFd, rules: DenyRules) -> Self {
        Self { fd, rules, count: 0 }
    }

    /// Answers the next call, if there is one.
    pub(crate) fn answer(&mut self, output: &mut File) -> io::Result<()> {
        // None: the thread was killed in the meantime.
        let Some(call) = seccomp::next_denied(&self.fd) else { return Ok(()) };
        self.count += 1;
        if self.count > MAX_UNDELAYED_ANSWERS {
            std::thread::sleep(ANSWER_DELAY);
        }
        seccomp::refuse(&self.fd, &call, self.rules.errno_for(&call));
        let DeniedCall { syscall, arguments, .. } = call;
        send(output, &AgentEvent::SyscallDenied { syscall, arguments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPERM: i32 = 1;
    const EINVAL: i32 = 22;

    fn condition(argument: u32, mask: u64, is_member: bool, values: &[u64]) -> ArgumentCondition {
        ArgumentCondition { argument, mask, is_member, values: values.to_vec() }
    }

    #[test]
    fn the_first_rule_that_matches_answers() {
        let special = vec![condition(0, 0xff, true, &[1, 2]), condition(1, u64::MAX, false, &[0])];
        let rules = DenyRules::new(&[SyscallDenyRules {
            syscall: 41,
            rules: vec![
                DenyRule { errno: EINVAL, conditions: special },
                DenyRule { errno: EPERM, conditions: Vec::new() },
            ],
        }]);
        for (syscall, arguments, errno) in [
            (41, [1, 5, 0, 0, 0, 0], EINVAL),
            // Only the masked bits count.
            (41, [0xab02, 5, 0, 0, 0, 0], EINVAL),
            (41, [3, 5, 0, 0, 0, 0], EPERM),
            (41, [1, 0, 0, 0, 0, 0], EPERM),
            (42, [1, 5, 0, 0, 0, 0], ENOSYS),
        ] {
            let call = DeniedCall { id: 0, syscall, arguments };
            assert_eq!(rules.errno_for(&call), errno, "{syscall} {arguments:?}");
        }
    }

    #[test]
    fn an_argument_that_no_call_has_is_zero() {
        assert!(holds(&condition(9, u64::MAX, true, &[0]), &[7; 6]));
        assert!(!holds(&condition(u32::MAX, u64::MAX, false, &[0]), &[7; 6]));
    }
}
