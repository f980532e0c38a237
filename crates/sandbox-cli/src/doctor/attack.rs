//! `sandbox-run doctor --attack`: proves the walls by trying to get through them.

use std::io::{self, Write};

use comfy_table::{ContentArrangement, Table};
use sandbox::attack::AttackResult;
use serde::Serialize;

use crate::errors::{Failure, printable};
use crate::output::{Paint, terminal_width};

/// One attack in JSON.
#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    class: &'a str,
    title: &'a str,
    wall: &'a str,
    contained: bool,
    detail: &'a str,
}

/// Runs every shipped attack. Exit code 0 means that all of them were contained.
pub(super) fn try_all(json: bool) -> Result<u8, Failure> {
    let mut progress = |result: &AttackResult| {
        let mark = if result.contained { "." } else { "!" };
        // Progress is a courtesy: where it cannot be shown, the table still can.
        let _ = write!(io::stderr().lock(), "{mark}");
    };
    let attacks = sandbox::attack::run_all(&mut progress);
    let _ = writeln!(io::stderr().lock());
    let attacks = attacks.map_err(|error| Failure::ours(&error))?;
    let stdout = io::stdout();
    let text = if json {
        let entries: Vec<_> = attacks.iter().map(entry).collect();
        let text = serde_json::to_string_pretty(&entries);
        text.map_err(|error| Failure::ours(&error))? + "\n"
    } else {
        describe(&attacks, Paint::for_stream(&stdout), terminal_width())
    };
    let printed = stdout.lock().write_all(text.as_bytes());
    printed.map_err(|error| Failure::printing(&error))?;
    Ok(u8::from(!attacks.iter().all(|attack| attack.contained)))
}

fn entry(attack: &AttackResult) -> Entry<'_> {
    Entry {
        name: &attack.name,
        class: &attack.class,
        title: &attack.title,
        wall: &attack.wall,
        contained: attack.contained,
        detail: &attack.detail,
    }
}

fn describe(attacks: &[AttackResult], paint: Paint, width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
    }
    table.set_header(["ATTACK", "CLASS", "WALL", "RESULT"]);
    for attack in attacks {
        let result = if attack.contained {
            "✓ contained".to_owned()
        } else {
            format!("✗ NOT CONTAINED: {}", printable(&attack.detail))
        };
        table.add_row([&attack.name, &attack.class, &attack.wall, &result]);
    }
    let through = attacks.iter().filter(|attack| !attack.contained).count();
    let verdict = match through {
        0 => paint.good(&format!("all {} attacks were contained", attacks.len())),
        through => paint.bad(&format!(
            "{through} of {} attacks got through",
            attacks.len()
        )),
    };
    format!("{}\n\n{verdict}\n", table.trim_fmt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attack(name: &str, contained: bool) -> AttackResult {
        AttackResult {
            name: name.into(),
            class: "escape".into(),
            title: "Reads a file of the host".into(),
            wall: "fresh-root".into(),
            contained,
            detail: "read /etc/shadow\nof the host".into(),
        }
    }

    #[test]
    fn one_attack_that_gets_through_is_seen_at_once() {
        let attacks = [attack("read-shadow", true), attack("read-root", false)];
        let text = describe(&attacks, Paint::none(), None);
        assert!(text.contains("1 of 2 attacks got through"), "{text}");
        let line = text
            .lines()
            .find(|line| line.contains("read-root"))
            .unwrap();
        assert!(
            line.ends_with("NOT CONTAINED: read /etc/shadow of the host"),
            "{line}"
        );
        let text = describe(&attacks[..1], Paint::none(), None);
        assert!(text.contains("all 1 attacks were contained"), "{text}");
    }
}
