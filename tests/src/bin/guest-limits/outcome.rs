//! How a case says that something does not hold: by words, because this program ends at a panic.

pub(crate) type Outcome = Result<(), String>;

/// Fails the case with what was found, unless it holds.
macro_rules! ensure {
    ($holds:expr, $($told:tt)+) => {
        if !$holds {
            return Err(format!($($told)+));
        }
    };
}
