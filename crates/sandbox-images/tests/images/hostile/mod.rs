//! Hostile images: they try to escape, to exhaust resources, or to look different to different tools.

mod documents;
mod escapes;
mod floods;
mod malformed;
mod naive;

use sandbox_images::Limits;

use crate::harness::Harness;

/// One hostile image.
struct Attack {
    name: &'static str,
    archive: Vec<u8>,
    expected: Expected,
}

enum Expected {
    /// The import fails with this text in the message.
    Rejected(&'static str),
    /// The import succeeds, with effects inside the image's root only.
    Contained,
}

fn rejected(name: &'static str, archive: Vec<u8>, reason: &'static str) -> Attack {
    Attack { name, archive, expected: Expected::Rejected(reason) }
}

fn contained(name: &'static str, archive: Vec<u8>) -> Attack {
    Attack { name, archive, expected: Expected::Contained }
}

/// Small limits, so that they are exceeded quickly.
fn limits() -> Limits {
    Limits {
        layers: 8,
        document_bytes: 64 << 10,
        index_entries: 50,
        index_depth: 3,
        blob_bytes: 2 << 20,
        archive_entries: 100,
        entries: 1000,
        unpacked_bytes: 3 << 19,
        file_bytes: 1 << 19,
        path_bytes: 1000,
        depth: 20,
    }
}

/// Imports each image into an empty store, and reports all failures.
fn check_all(attacks: impl Fn(&Harness) -> Vec<Attack>) {
    let mut harness = Harness::with_limits(limits());
    let attacks = attacks(&harness);
    let mut failures = Vec::new();
    for attack in &attacks {
        harness.reset_store();
        let result = harness.import(&attack.archive);
        let name = attack.name;
        if !harness.canary_is_unharmed() {
            failures.push(format!("{name}: it modified the canary"));
        }
        match (&attack.expected, &result) {
            (Expected::Rejected(reason), Err(error)) if error.contains(reason) => {
                if !harness.store_is_empty() {
                    failures.push(format!("{name}: it left {:?}", harness.contents()));
                }
                let is_named = error.contains("cannot use image '") && error.contains("archive'");
                if !is_named || !harness.store.list().unwrap().is_empty() {
                    failures.push(format!("{name}: the message does not name the image: {error}"));
                }
            }
            (Expected::Contained, Ok(())) => {
                let contents = harness.contents();
                if (contents["roots"], contents["temporary"]) != (1, 0) {
                    failures.push(format!("{name}: it left {contents:?}"));
                }
            }
            (Expected::Rejected(reason), _) => {
                failures.push(format!("{name}: not '{reason}' but {result:?}"));
            }
            (Expected::Contained, _) => failures.push(format!("{name}: {result:?}")),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        attacks.len(),
        failures.join("\n")
    );
}
