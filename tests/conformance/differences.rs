//! The table of what backends lack, in the documentation: written by this test, and the same as what the tests know.

use std::fmt::Write as _;
use std::path::Path;

use sandbox_tests::backend::{BACKENDS, explained_attacks};

const BEGIN: &str = "<!-- differences -->\n";
const END: &str = "<!-- end of differences -->";

fn table() -> String {
    let mut table = String::from("| backend | what | why |\n|---|---|---|\n");
    for backend in BACKENDS {
        for (feature, why) in backend.lacks {
            let _ = writeln!(table, "| `{}` | no {} | {why} |", backend.name, feature.name());
        }
        for (what, why) in backend.differs {
            let _ = writeln!(table, "| `{}` | {what} | {why} |", backend.name);
        }
    }
    for backend in BACKENDS {
        let isolation = backend.name.parse().expect("it is named as in reports");
        for (attack, why) in explained_attacks(isolation) {
            let _ = writeln!(table, "| `{isolation}` | attack `{attack}` | {why} |");
        }
    }
    table
}

#[test]
fn differences_are_in_the_documentation() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/backends.md");
    let text = std::fs::read_to_string(&path).expect("the documentation is there");
    let (before, rest) = text.split_once(BEGIN).expect("it has a place for the table");
    let (found, after) = rest.split_once(END).expect("which ends");
    let table = table();
    #[expect(clippy::disallowed_methods, reason = "whoever runs the tests says so this way")]
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(found, table, "UPDATE_DOCS=1 writes it anew");
}
