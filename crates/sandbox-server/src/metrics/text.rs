//! The text format that every Prometheus reads.
//!
//! The library writes OpenMetrics, in which a counter's description carries the name without `_total`.
//! The older format has one name for both; read as such, every counter would lack its type and help.

use std::fmt::Write as _;

use prometheus_client::encoding::text::encode_registry;
use prometheus_client::registry::Registry;

pub(super) fn encode(registry: &Registry) -> String {
    let mut text = String::new();
    encode_registry(&mut text, registry).expect("a text in memory takes whatever is written");
    translate(&text)
}

/// Descriptions come as `# HELP NAME …` and then `# TYPE NAME KIND`.
fn translate(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len() + 1024);
    let mut lines = open_metrics.lines().peekable();
    while let Some(line) = lines.next() {
        let described = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '));
        let kind = lines.peek().and_then(|next| next.strip_prefix("# TYPE "));
        let written = match (described, kind.and_then(|rest| rest.split_once(' '))) {
            (Some((name, help)), Some((typed, "counter"))) if name == typed => {
                lines.next();
                let help = format_args!("# HELP {name}_total {help}\n");
                writeln!(text, "{help}# TYPE {name}_total counter")
            }
            _ => writeln!(text, "{line}"),
        };
        written.expect("a text in memory takes whatever is written");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_described_by_its_whole_name() {
        let open =
            "# HELP a Said.\n# TYPE a counter\na_total 1\n# HELP b B.\n# TYPE b gauge\nb 1\n";
        let expected = "# HELP a_total Said.\n# TYPE a_total counter\na_total 1\n\
                        # HELP b B.\n# TYPE b gauge\nb 1\n";
        assert_eq!(translate(open), expected);
    }
}
