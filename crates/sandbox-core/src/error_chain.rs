use std::error::Error;

/// Formats an error and its causes as one line. Each error type describes only its own step, so
/// this is used where an error is printed or reported. A cause that its parent already contains is
/// not repeated.
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
    fn every_cause_is_printed_once() {
        let innermost = std::io::Error::other("no space left");
        let inner = BackendError::Failed { step: "write".into(), cause: Box::new(innermost) };
        let outer = BackendError::Failed { step: "start".into(), cause: Box::new(inner) };
        assert_eq!(with_causes(&outer), "start: write: no space left");
        let repeating = std::io::Error::other(std::io::Error::other("once"));
        assert_eq!(with_causes(&repeating), "once");
    }
}
