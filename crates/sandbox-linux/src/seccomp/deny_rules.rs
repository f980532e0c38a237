//! How denied calls are answered, as data for the agent.

use sandbox_protocol::agent::{self, ArgumentCondition, SyscallDenyRules};

use super::arch::Arch;
use super::profile::Profile;
use super::rules::{Condition, DenyRule, Membership};

impl Profile {
    /// For each call, how its denial is answered: the rules in the order in which they apply.
    pub fn deny_rules(&self, arch: Arch) -> Vec<SyscallDenyRules> {
        let denied = self.rules_of(arch).iter().filter(|(_, rules)| !rules.deny.is_empty());
        denied
            .map(|(number, rules)| SyscallDenyRules {
                syscall: *number,
                rules: rules.deny.iter().map(rule).collect(),
            })
            .collect()
    }
}

fn rule(rule: &DenyRule) -> agent::DenyRule {
    let conditions = rule.conditions.iter().map(condition).collect();
    agent::DenyRule { errno: rule.answer.errno, conditions }
}

fn condition(condition: &Condition) -> ArgumentCondition {
    ArgumentCondition {
        // No call has more than six.
        argument: u32::try_from(condition.argument).unwrap_or(u32::MAX),
        mask: condition.mask,
        is_member: condition.membership == Membership::Is,
        values: condition.values.iter().copied().collect(),
    }
}
