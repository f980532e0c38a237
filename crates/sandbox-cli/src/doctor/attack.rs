//! `sandbox-run doctor --attack`: test the sandbox with the bundled attacks.

use std::io::{self, IsTerminal, Write};

use sandbox::attack::{AttackResult, Outcome};
use serde::Serialize;

use crate::errors::{Failure, printable};
use crate::output::{Paint, new_table, terminal_width};
use crate::stdout::{print, to_json};

/// One attack; an element of the JSON output.
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

/// Runs every bundled attack. Exit code 0 means that at least one ran and all that ran were contained.
pub(super) fn run_all(json: bool) -> Result<u8, Failure> {
    let shows_progress = io::stderr().is_terminal();
    let mut progress = |result: &AttackResult| {
        let mark = if result.outcome.is_fine() { "." } else { "!" };
        if shows_progress {
            // A failure to print progress must not hide the result.
            let _ = write!(io::stderr().lock(), "{mark}");
        }
    };
    let attacks = sandbox::attack::run_all(&mut progress);
    if shows_progress {
        let _ = writeln!(io::stderr().lock());
    }
    let attacks = attacks.map_err(|error| Failure::internal(&error))?;
    let text = if json {
        let entries: Vec<_> = attacks.iter().map(entry).collect();
        to_json(&entries)?
    } else {
        describe(&attacks, Paint::for_stream(&io::stdout()), terminal_width())
    };
    print(&text)?;
    let count = Count::of(&attacks);
    Ok(u8::from(count.not_contained > 0 || count.contained == 0))
}

/// The number of attacks by outcome.
struct Count {
    contained: usize,
    not_contained: usize,
    skipped: usize,
}

impl Count {
    fn of(attacks: &[AttackResult]) -> Self {
        let those = |outcome: Outcome| attacks.iter().filter(move |it| it.outcome == outcome);
        Self {
            contained: those(Outcome::Contained).count(),
            // An unclear outcome proves nothing: count it as not contained.
            not_contained: those(Outcome::Breached).chain(those(Outcome::Unclear)).count(),
            skipped: those(Outcome::Skipped).count(),
        }
    }

    fn describe(&self, paint: Paint) -> String {
        let Self { contained, not_contained, skipped } = self;
        let tried = contained + not_contained;
        let mut text = match (contained, not_contained) {
            (0, 0) => paint.bad("no attack could run on this host"),
            (_, 0) => paint.good(&format!("all {tried} attacks were contained")),
            _ => paint.bad(&format!("{not_contained} of {tried} attacks were NOT contained")),
        };
        if *skipped > 0 {
            text.push_str(&paint.warning(&format!("; {skipped} could not run on this host")));
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
    let mut table = new_table(["ATTACK", "PROTECTION", "RESULT"], width);
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
    format!("{}\n\n{}\n", table.trim_fmt(), Count::of(attacks).describe(paint))
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
    fn an_attack_that_is_not_contained_is_highlighted() {
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
    fn a_skipped_attack_is_neither_contained_nor_a_failure() {
        let attacks = [attack("one", Outcome::Contained), attack("two", Outcome::Skipped)];
        let text = describe(&attacks, Paint::none(), None);
        assert!(text.ends_with("all 1 attacks were contained; 1 could not run on this host\n"));
        let text = describe(&attacks[1..], Paint::none(), None);
        assert!(text.contains("no attack could run on this host"), "{text}");
        let unclear = Count::of(&[attack("three", Outcome::Unclear)]);
        assert_eq!(unclear.not_contained, 1);
    }
}
