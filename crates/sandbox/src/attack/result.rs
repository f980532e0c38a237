/// The result of an attack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttackResult {
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: String,
    /// Its title.
    pub title: String,
    /// The protections that stop it, or a dash if no single one can be disabled.
    pub protections: String,
    /// The outcome.
    pub outcome: Outcome,
    /// Explanation: what stopped it, what it reached, or why it was skipped.
    pub detail: String,
}

/// The outcome of an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It failed, in the way it was expected to.
    Contained,
    /// It reached its goal.
    Breached,
    /// It neither succeeded nor failed in the expected way, which proves nothing.
    Unclear,
    /// It cannot run on this host.
    Skipped,
}

impl Outcome {
    /// The word in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Contained => "contained",
            Self::Breached => "breached",
            Self::Unclear => "unclear",
            Self::Skipped => "skipped",
        }
    }

    /// Whether the outcome is acceptable.
    pub const fn is_fine(self) -> bool {
        matches!(self, Self::Contained | Self::Skipped)
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
