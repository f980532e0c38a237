//! Formats a usage error of clap.

/// The error and its tip on one line, without the usage.
pub(crate) fn usage_error_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let mut message = String::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("Usage:") || line.starts_with("For more information") {
            break;
        }
        let (joint, line) = match line.strip_prefix("tip:") {
            Some(tip) => ("; ", tip.trim()),
            None => (" ", line.strip_prefix("error:").unwrap_or(line).trim()),
        };
        if line.is_empty() {
            continue;
        }
        if !message.is_empty() {
            message.push_str(joint);
        }
        message.push_str(line);
    }
    message.push_str(" (see --help)");
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::Parser;

    fn message(line: &[&str]) -> String {
        let line = std::iter::once("sandbox-run").chain(line.iter().copied());
        usage_error_line(&Cli::try_parse_from(line).unwrap_err())
    }

    #[test]
    fn a_mistyped_flag_gives_one_line_with_the_correct_one() {
        let message = message(&["--lnag", "python"]);
        assert_eq!(message.lines().count(), 1);
        assert!(message.contains("'--lnag'") && message.contains("'--lang'"), "{message}");
        assert!(!message.contains("Usage"), "{message}");
    }

    #[test]
    fn an_invalid_value_names_the_flag_and_the_format() {
        let message = message(&["--timeout", "10"]);
        assert!(message.contains("--timeout") && message.contains("500ms"), "{message}");
        assert!(!message.starts_with("error"), "{message}");
    }

    #[test]
    fn missing_arguments_are_listed_on_the_same_line() {
        let message = message(&["completions"]);
        assert_eq!(message.lines().count(), 1);
        assert!(message.contains("<SHELL>"), "{message}");
    }
}
