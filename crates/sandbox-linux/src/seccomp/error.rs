//! Errors in a profile.

/// Why a profile was refused.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The text is not TOML, or has fields or values that a profile does not have.
    #[error("the profile cannot be read")]
    Syntax(#[source] Box<toml::de::Error>),
    /// An entry parses and makes no sense.
    #[error("{list} entry {position} ({names}) of the profile is wrong")]
    Entry {
        /// Which list the entry is in: `allow` or `deny`.
        list: &'static str,
        /// Its place in that list, counted from 1.
        position: usize,
        /// The names it lists, to find it by.
        names: String,
        /// What is wrong.
        #[source]
        problem: EntryProblem,
    },
    /// The compiled program is longer than the kernel allows.
    #[error("the profile compiles to {length} instructions, and the kernel takes {limit}")]
    TooLong {
        /// How many instructions it came to.
        length: usize,
        /// The kernel's maximum.
        limit: usize,
    },
}

/// What is wrong with an entry.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryProblem {
    /// A name is not in the architecture's table.
    #[error(
        "{arch} has no system call named `{name}`; `arch` can limit an entry to those that have"
    )]
    UnknownName {
        /// The name as written.
        name: String,
        /// The architecture that lacks it.
        arch: &'static str,
    },
    /// The list of names is empty.
    #[error("it names no system call")]
    NoNames,
    /// The list of architectures is empty.
    #[error("`arch` is empty, so that the entry would count nowhere")]
    NoArch,
    /// The reason is missing or blank.
    #[error("it gives no reason")]
    NoReason,
    /// A call has six arguments.
    #[error("argument {argument} does not exist; they count from 0 to 5")]
    NoSuchArgument {
        /// The index as written.
        argument: usize,
    },
    /// A condition must have exactly one of `is` and `is_not`, with at least one value.
    #[error("the condition on argument {argument} needs either `is` or `is_not`, with values")]
    NoValues {
        /// The argument the condition is about.
        argument: usize,
    },
    /// A value can never match, because it has bits outside the mask or the width.
    #[error("the value {value} has bits that the condition on argument {argument} masks off")]
    ValueOutsideMask {
        /// The name of the value.
        value: String,
        /// The argument the condition is about.
        argument: usize,
    },
    /// An earlier entry already covers the call without conditions, so this one has no effect.
    #[error("an earlier entry has already settled `{name}`, so that this one never counts")]
    NeverCounts {
        /// The call.
        name: String,
    },
}
