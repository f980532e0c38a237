//! Tests of docs/server.md: runs its commands, and checks that its table of settings is complete.

use std::process::Command;

use crate::server_process::{Server, output};

const PAGE: &str = include_str!("../../../../docs/server.md");

/// A command of the page and its expected output.
struct Example<'a> {
    command: &'a str,
    printed: &'a str,
}

fn data() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be created")
}

fn examples() -> Vec<Example<'static>> {
    let blocks = PAGE.split("```console\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("\n```").next().expect("a block has an end"));
    let examples = blocks.flat_map(|block| block.split("$ ").skip(1));
    examples
        .map(|example| {
            let (command, printed) = example.split_once('\n').expect("each prints something");
            Example { command, printed: printed.trim_end() }
        })
        .collect()
}

/// Whether a text matches a pattern, in which `...` matches anything.
fn matches(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split("...");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<_> = parts.collect();
    let Some((last, between)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in between {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

#[test]
fn the_commands_of_the_page_print_what_it_shows() {
    let data = data();
    let server = Server::start(data.path());
    let examples = examples();
    assert!(examples.len() >= 8, "{} commands", examples.len());
    for Example { command, printed } in examples {
        let here = command.replace("localhost:8080", &server.address.to_string());
        let shown = Command::new("sh").args(["-c", &here]).output().expect("there is a shell");
        let shown = String::from_utf8(shown.stdout).expect("it prints text");
        assert!(
            matches(shown.trim_end(), printed),
            "{command}\nprints\n{shown}\nand not\n{printed}"
        );
    }
}

#[test]
fn the_table_of_settings_is_complete() {
    let data = data();
    let checked = output(data.path(), &["config", "check"]);
    let checked = String::from_utf8(checked.stdout).expect("it prints text");
    let rows: Vec<_> = PAGE.lines().filter(|line| line.starts_with("| `")).collect();
    let settings = checked.lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for setting in settings {
        let (name, value) = setting.split_once(' ').expect("a name and a value");
        let row = rows.iter().find(|row| row.contains(&format!("`{name}`")));
        let row = row.unwrap_or_else(|| panic!("{name} is not in the table"));
        if setting.ends_with("# default") && name.starts_with("max_") {
            let value = value.trim().split(' ').next().unwrap_or_default();
            assert!(row.contains(&format!("| `{value}` |")), "{name} is {value}: {row}");
        }
        count += 1;
    }
    assert!(count > 20, "{checked}");
}

#[test]
fn dots_match_anything() {
    assert!(matches("abc", "a...c") && matches("abc", "...") && matches("abc", "abc"));
    assert!(matches("a b c d", "a...b...d"));
    assert!(!matches("abc", "ab") && !matches("abc", "b...") && !matches("abc", "a...b"));
    assert!(!matches("a c b d", "a...b...c...d"));
}
