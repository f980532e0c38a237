use std::error::Error;

/// An error and all its causes in one line. Each error tells only its own part; whoever prints one, or
/// puts it into a report, tells the whole. A cause that an error already repeats is not said twice.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let addition = error.to_string();
        if !text.ends_with(&addition) {
            text.push_str(": ");
            text.push_str(&addition);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BackendError;

    #[test]
    fn the_whole_chain_is_told_once() {
        let innermost = std::io::Error::other("no space left");
        let inner = BackendError::Failed { step: "write".into(), cause: Box::new(innermost) };
        let outer = BackendError::Failed { step: "start".into(), cause: Box::new(inner) };
        assert_eq!(with_causes(&outer), "start: write: no space left");
        let repeating = std::io::Error::other(std::io::Error::other("once"));
        assert_eq!(with_causes(&repeating), "once");
    }
}
