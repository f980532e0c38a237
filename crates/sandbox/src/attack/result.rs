/// How an attack went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttackResult {
    /// Its name.
    pub name: String,
    /// What it is after.
    pub class: String,
    /// One line about it.
    pub title: String,
    /// The walls that stop it, or a dash where no single one could be taken away.
    pub protections: String,
    /// How it went.
    pub outcome: Outcome,
    /// In words: what stopped it, what it got, or why it could not be tried.
    pub detail: String,
}

/// How an attack went, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It failed, in the way it was expected to.
    Contained,
    /// It got what it was after.
    Breached,
    /// It neither succeeded nor failed in the expected way, which proves nothing.
    Unclear,
    /// It could not be tried on this host.
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

    /// Whether this is no reason for concern.
    pub const fn is_fine(self) -> bool {
        matches!(self, Self::Contained | Self::Skipped)
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
