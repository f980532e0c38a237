//! The answers to denied calls as data, for an agent that gives them where the supervisor cannot.

use super::arch::Arch;
use super::profile::Profile;
use super::rules::{Condition, Membership};
use crate::guest::frame::Packer;

impl Profile {
    /// For each call, how a denial is answered: the conditions and the error number of every rule, in order. The agent
    /// reads it in `agent/denied.rs`.
    pub fn answers(&self, arch: Arch) -> Vec<u8> {
        let mut packed = Packer::default();
        let denied = || self.rules_of(arch).iter().filter(|(_, rules)| !rules.deny.is_empty());
        packed.number(denied().count() as u64);
        for (number, rules) in denied() {
            packed.number((*number).into()).number(rules.deny.len() as u64);
            for rule in &rules.deny {
                packed.number(rule.answer.errno.unsigned_abs().into());
                packed.number(rule.conditions.len() as u64);
                rule.conditions.iter().for_each(|condition| pack(&mut packed, condition));
            }
        }
        packed.0
    }
}

fn pack(packed: &mut Packer, condition: &Condition) {
    packed.number(condition.argument as u64).number(condition.mask);
    packed.number(u64::from(condition.membership == Membership::Is));
    packed.number(condition.values.len() as u64);
    for value in &condition.values {
        packed.number(*value);
    }
}
