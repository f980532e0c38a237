//! `sandbox-run doctor --attack`: proves the walls by trying to get through them.

use std::io::{self, IsTerminal, Write};

use comfy_table::{ContentArrangement, Table};
use sandbox::attack::{AttackResult, Outcome};
use serde::Serialize;

use crate::answer::as_json;
use crate::errors::{Failure, printable};
use crate::output::{Paint, terminal_width};

/// One attack in JSON.
#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    class: &'a str,
    title: &'a str,
    wall: &'a str,
    outcome: &'a str,
    contained: bool,
    detail: &'a str,
}

/// Tries every shipped attack. Exit code 0 means that none got through, and that some were tried.
pub(super) fn try_all(json: bool) -> Result<u8, Failure> {
    let shows_progress = io::stderr().is_terminal();
    let mut progress = |result: &AttackResult| {
        let mark = if result.outcome.is_fine() { "." } else { "!" };
        if shows_progress {
            // Progress is a courtesy: where it cannot be shown, the table still can.
            let _ = write!(io::stderr().lock(), "{mark}");
        }
    };
    let attacks = sandbox::attack::run_all(&mut progress);
    if shows_progress {
        let _ = writeln!(io::stderr().lock());
    }
    let attacks = attacks.map_err(|error| Failure::ours(&error))?;
    let stdout = io::stdout();
    let text = if json {
        let entries: Vec<_> = attacks.iter().map(entry).collect();
        as_json(&entries)?
    } else {
        describe(&attacks, Paint::for_stream(&stdout), terminal_width())
    };
    let printed = stdout.lock().write_all(text.as_bytes());
    printed.map_err(|error| Failure::printing(&error))?;
    let count = Count::of(&attacks);
    Ok(u8::from(count.through > 0 || count.contained == 0))
}

/// How many went which way.
struct Count {
    contained: usize,
    through: usize,
    skipped: usize,
}

impl Count {
    fn of(attacks: &[AttackResult]) -> Self {
        let those = |outcome: Outcome| attacks.iter().filter(move |it| it.outcome == outcome);
        Self {
            contained: those(Outcome::Contained).count(),
            // What went neither way proves nothing, and counts as if it had got through.
            through: those(Outcome::Breached).chain(those(Outcome::Unclear)).count(),
            skipped: those(Outcome::Skipped).count(),
        }
    }

    fn in_words(&self, paint: Paint) -> String {
        let Self { contained, through, skipped } = self;
        let tried = contained + through;
        let mut text = match (contained, through) {
            (0, 0) => paint.bad("no attack could be tried here"),
            (_, 0) => paint.good(&format!("all {tried} attacks were contained")),
            _ => paint.bad(&format!("{through} of {tried} attacks were NOT contained")),
        };
        if *skipped > 0 {
            text.push_str(&paint.warning(&format!("; {skipped} could not be tried here")));
        }
        text
    }
}

fn entry(attack: &AttackResult) -> Entry<'_> {
    Entry {
        name: &attack.name,
        class: &attack.class,
        title: &attack.title,
        wall: &attack.protections,
        outcome: attack.outcome.name(),
        contained: attack.outcome == Outcome::Contained,
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
    table.set_header(["ATTACK", "WALL", "RESULT"]);
    for attack in attacks {
        let name = format!("{}/{}", attack.class, attack.name);
        let detail = printable(&attack.detail);
        let result = match attack.outcome {
            Outcome::Contained => format!("✓ {detail}"),
            Outcome::Breached => format!("✗ NOT CONTAINED: {detail}"),
            Outcome::Unclear => format!("✗ UNCLEAR: {detail}"),
            Outcome::Skipped => format!("- skipped: {detail}"),
        };
        table.add_row([&name, &attack.protections, &result]);
    }
    format!("{}\n\n{}\n", table.trim_fmt(), Count::of(attacks).in_words(paint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attack(name: &str, outcome: Outcome) -> AttackResult {
        AttackResult {
            name: name.into(),
            class: "escape".into(),
            title: "Reads a file of the host".into(),
            protections: "fresh-root".into(),
            outcome,
            detail: "read /etc/shadow\nof the host".into(),
        }
    }

    #[test]
    fn one_attack_that_gets_through_is_seen_at_once() {
        let attacks =
            [attack("read-shadow", Outcome::Contained), attack("read-root", Outcome::Breached)];
        let text = describe(&attacks, Paint::none(), None);
        assert!(text.contains("1 of 2 attacks were NOT contained"), "{text}");
        let line = text.lines().find(|line| line.contains("escape/read-root")).unwrap();
        assert!(line.ends_with("NOT CONTAINED: read /etc/shadow of the host"), "{line}");
        let text = describe(&attacks[..1], Paint::none(), None);
        assert!(text.ends_with("all 1 attacks were contained\n"), "{text}");
    }

    #[test]
    fn what_could_not_be_tried_is_no_proof_and_no_failure() {
        let attacks = [attack("one", Outcome::Contained), attack("two", Outcome::Skipped)];
        let text = describe(&attacks, Paint::none(), None);
        assert!(text.ends_with("all 1 attacks were contained; 1 could not be tried here\n"));
        let text = describe(&attacks[1..], Paint::none(), None);
        assert!(text.contains("no attack could be tried here"), "{text}");
        let unclear = Count::of(&[attack("three", Outcome::Unclear)]);
        assert_eq!(unclear.through, 1);
    }
}
