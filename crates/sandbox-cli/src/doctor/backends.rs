//! Which isolation backends are available, and which of them `auto` selects.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sandbox::{Feature, Isolation, IsolationStatus, Protection};
use serde::Serialize;

use crate::errors::printable;
use crate::output::Paint;

/// The availability of all backends.
#[derive(Debug, Serialize)]
pub(super) struct Backends {
    isolations: Vec<Backend>,
    /// What `--isolation auto` selects, if anything.
    auto: Option<Selection>,
    /// Why `auto` selects nothing, if so.
    auto_refuses: Option<String>,
}

#[derive(Debug, Serialize)]
struct Backend {
    name: Isolation,
    available: bool,
    /// Why it is not available and what to install, if so.
    reason: Option<String>,
    /// Protections that it could enforce on another host.
    lacks: Vec<Protection>,
    /// What its sandboxes can do besides running one program.
    features: BTreeSet<Feature>,
}

#[derive(Debug, Serialize)]
struct Selection {
    isolation: Isolation,
    reason: String,
}

impl Backends {
    pub(super) fn new(found: &[IsolationStatus], order: &[Isolation]) -> Self {
        let backend = |status: &IsolationStatus| Backend {
            name: status.isolation,
            available: status.unavailable.is_none(),
            reason: status.unavailable.clone(),
            lacks: status.lacks.clone(),
            features: status.features.clone(),
        };
        let (auto, auto_refuses) = match sandbox::preferred(order, found) {
            Ok((isolation, reason)) => (Some(Selection { isolation, reason }), None),
            Err(reason) => (None, Some(reason)),
        };
        Self { isolations: found.iter().map(backend).collect(), auto, auto_refuses }
    }

    pub(super) fn describe(&self, text: &mut String, paint: Paint) {
        let _ = writeln!(text, "\n{}", paint.bold("isolation"));
        for backend in &self.isolations {
            let name = backend.name;
            let Some(reason) = &backend.reason else {
                let lacks: Vec<_> =
                    backend.lacks.iter().map(|protection| protection.name()).collect();
                let lacks = match &lacks[..] {
                    [] => String::new(),
                    lacks => format!(", without {}", lacks.join(", ")),
                };
                let _ = write!(text, "{} {name}: available{lacks}", paint.good("✓"));
                for feature in &backend.features {
                    let _ = write!(text, "; {feature}");
                }
                text.push('\n');
                continue;
            };
            let _ = writeln!(text, "{} {name}: {}", paint.bad("✗"), printable(reason));
        }
        let selection = match &self.auto {
            Some(Selection { isolation, reason }) => {
                let reason = reason.strip_prefix("auto: ").unwrap_or(reason);
                format!("auto selects {isolation}: {reason}")
            }
            None => {
                format!("auto selects none: {}", self.auto_refuses.as_deref().unwrap_or_default())
            }
        };
        let _ = writeln!(text, "  {}", paint.dim(&format!("→ {}", printable(&selection))));
    }
}
