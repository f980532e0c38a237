//! The Prometheus text format.
//!
//! The library writes OpenMetrics, where the `HELP` and `TYPE` of a counter have its name without `_total`. In the
//! Prometheus format they need the full name; otherwise counters would have neither.

use std::fmt::Write as _;

use prometheus_client::encoding::text::encode_registry;
use prometheus_client::registry::Registry;

pub(super) fn encode(registry: &Registry) -> String {
    let mut text = String::new();
    encode_registry(&mut text, registry).expect("writing to a string cannot fail");
    translate(&text)
}

/// Renames counters in `# HELP NAME …` lines that a `# TYPE NAME counter` line follows.
fn translate(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len() + 1024);
    let mut lines = open_metrics.lines().peekable();
    while let Some(line) = lines.next() {
        let described = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '));
        let kind = lines.peek().and_then(|next| next.strip_prefix("# TYPE "));
        let line = match (described, kind.and_then(|rest| rest.split_once(' '))) {
            (Some((name, help)), Some((typed, "counter"))) if name == typed => {
                lines.next();
                let help = format_args!("# HELP {name}_total {help}\n");
                writeln!(text, "{help}# TYPE {name}_total counter")
            }
            _ => writeln!(text, "{line}"),
        };
        line.expect("writing to a string cannot fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_has_its_full_name_in_help_and_type() {
        let open =
            "# HELP a Said.\n# TYPE a counter\na_total 1\n# HELP b B.\n# TYPE b gauge\nb 1\n";
        let expected = "# HELP a_total Said.\n# TYPE a_total counter\na_total 1\n\
                        # HELP b B.\n# TYPE b gauge\nb 1\n";
        assert_eq!(translate(open), expected);
    }
}
