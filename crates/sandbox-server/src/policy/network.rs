//! What of the network a client may ask for.

use sandbox::{AddressRange, AllowTarget, Allowlist};
use sandbox_api::Problem;

use crate::problems::invalid;

/// What the server's owner permits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetworkPermission {
    /// Whether programs may reach anything at all.
    pub(crate) allowlist: bool,
    /// Ranges of addresses that may be named although they are not public.
    pub(crate) ranges: Vec<AddressRange>,
}

impl NetworkPermission {
    /// Refuses what is not permitted.
    pub(crate) fn check(&self, allow: Option<&Allowlist>) -> Result<(), Problem> {
        let Some(allow) = allow else { return Ok(()) };
        if !self.allowlist {
            return Err(invalid(
                "network",
                "programs reach nothing here: its owner turned the mode allowlist off",
            ));
        }
        for rule in allow.rules() {
            if let AllowTarget::Range(range) = rule.target()
                && !range.is_public()
                && !self.ranges.iter().any(|permitted| range.is_within(permitted))
            {
                let reason = format!(
                    "{rule} is not public; whoever runs the server can permit it with the setting 'network_allow'"
                );
                return Err(invalid("network", reason));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ranges: &[&str], rules: &[&str]) -> Result<(), String> {
        let permission = NetworkPermission {
            allowlist: true,
            ranges: ranges.iter().map(|range| range.parse().unwrap()).collect(),
        };
        let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let list = Allowlist::new(rules, false).unwrap();
        permission.check(Some(&list)).map_err(|problem| problem.detail)
    }

    #[test]
    fn addresses_that_are_not_public_need_permission() {
        assert_eq!(check(&[], &["example.org", "1.1.1.1:53"]), Ok(()));
        for rule in ["127.0.0.1:80", "10.0.0.0/8:80", "0.0.0.0/0:80", "[::1]:80", "169.254.169.254"]
        {
            let refusal = check(&[], &["example.org", rule]).unwrap_err();
            assert!(refusal.contains("'network_allow'"), "{rule}: {refusal}");
        }
        assert_eq!(check(&["10.0.0.0/8"], &["10.1.0.0/16:80"]), Ok(()));
        assert!(check(&["10.1.0.0/16"], &["10.0.0.0/8:80"]).is_err());
    }

    #[test]
    fn an_owner_can_turn_it_off() {
        let off = NetworkPermission { allowlist: false, ranges: Vec::new() };
        assert!(off.check(Some(&Allowlist::default())).is_err());
        assert!(off.check(None).is_ok());
    }
}
