//! Images that try to get out, to fill the machine, or to be two things at once.

mod documents;
mod escapes;
mod floods;
mod malformed;
mod naive;

use sandbox_images::Limits;

use crate::arena::Arena;

/// One hostile image.
struct Attack {
    name: &'static str,
    archive: Vec<u8>,
    ends: Ends,
}

/// What comes of it.
enum Ends {
    /// It is refused, and this is in the message.
    Refused(&'static str),
    /// It does what it does inside its own root, as it would for any other tool.
    Contained,
}

fn refused(name: &'static str, archive: Vec<u8>, reason: &'static str) -> Attack {
    Attack { name, archive, ends: Ends::Refused(reason) }
}

fn contained(name: &'static str, archive: Vec<u8>) -> Attack {
    Attack { name, archive, ends: Ends::Contained }
}

/// Small, so that what goes over them is written quickly.
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

/// Tries each with a store of its own, and says everything that went wrong.
fn try_all(attacks: impl Fn(&Arena) -> Vec<Attack>) {
    let mut arena = Arena::with_limits(limits());
    let attacks = attacks(&arena);
    let mut wrong = Vec::new();
    for attack in &attacks {
        arena.begin_anew();
        let came = arena.import(&attack.archive);
        let name = attack.name;
        if !arena.canary_is_unharmed() {
            wrong.push(format!("{name}: it got out"));
        }
        match (&attack.ends, &came) {
            (Ends::Refused(reason), Err(error)) if error.contains(reason) => {
                if !arena.store_is_empty() {
                    wrong.push(format!("{name}: it left {:?}", arena.contents()));
                }
                let is_named = error.contains("the image '") && error.contains("archive'");
                if !is_named || !arena.store.list().unwrap().is_empty() {
                    wrong.push(format!("{name}: the message does not say which image: {error}"));
                }
            }
            (Ends::Contained, Ok(())) => {
                let contents = arena.contents();
                if (contents["roots"], contents["temporary"]) != (1, 0) {
                    wrong.push(format!("{name}: it left {contents:?}"));
                }
            }
            (Ends::Refused(reason), _) => {
                wrong.push(format!("{name}: not '{reason}' but {came:?}"));
            }
            (Ends::Contained, _) => wrong.push(format!("{name}: {came:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), attacks.len(), wrong.join("\n"));
}
