//! Two programs that differ in anything are two programs, however alike they are.

use std::collections::BTreeMap;

use sandbox::{Request, RequestBuilder};

use crate::toy::{Toy, compiled};

fn program(files: &[(&str, &str)]) -> RequestBuilder {
    let request = Request::builder("toy");
    files.iter().fold(request, |request, (path, contents)| request.file(*path, *contents))
}

/// Each differs from the first in as little as possible. Bytes that move from one file to the next, or
/// from a name to contents, are the same bytes one after the other.
const ALIKE: &[&[(&str, &str)]] = &[
    &[("main.toy", "ab"), ("x.toy", "cd")],
    // One byte.
    &[("main.toy", "aB"), ("x.toy", "cd")],
    // A byte from one file to the other.
    &[("main.toy", "a"), ("x.toy", "bcd")],
    &[("main.toy", "abc"), ("x.toy", "d")],
    &[("main.toy", "abcd"), ("x.toy", "")],
    // Another name, another directory, another case.
    &[("main.toy", "ab"), ("y.toy", "cd")],
    &[("main.toy", "ab"), ("x/x.toy", "cd")],
    &[("main.toy", "ab"), ("X.toy", "cd")],
    // The contents change places.
    &[("main.toy", "cd"), ("x.toy", "ab")],
    // One file less, one more, one that is not passed to the compiler.
    &[("main.toy", "ab")],
    &[("main.toy", "ab"), ("x.toy", "cd"), ("z.toy", "")],
    &[("main.toy", "ab"), ("x.toy", "cd"), ("data", "")],
    &[("main.toy", "ab"), ("x.toy", "cd"), ("data", "e")],
    // White space, and a letter that looks the same.
    &[("main.toy", "ab\n"), ("x.toy", "cd")],
    &[("main.toy", "\u{430}b"), ("x.toy", "cd")],
];

#[test]
fn programs_that_are_alike_never_share_an_entry() {
    let home = Toy::new();
    let sandbox = home.sandbox();
    let mut outputs = BTreeMap::new();
    for files in ALIKE {
        let (output, cached) = compiled(&sandbox, program(files));
        assert!(!cached, "{files:?} was taken for another program");
        assert_eq!(outputs.insert(output, files), None);
    }
    assert_eq!(home.kept(), ALIKE.len() as u64);
    for (output, files) in outputs {
        assert_eq!(compiled(&sandbox, program(files)), (output, true), "{files:?}");
    }
}

#[test]
fn what_only_the_run_stage_sees_does_not_make_another_program() {
    let home = Toy::new();
    let sandbox = home.sandbox();
    let (output, _) = compiled(&sandbox, program(ALIKE[0]));
    let other = program(ALIKE[0]).stdin("x").args(["y"]).env("Z", "z");
    assert_eq!(compiled(&sandbox, other), (output, true));
}
