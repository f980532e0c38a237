//! Shows, verifies and clears the store.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use assert_cmd::Command;

use crate::support::{BINARY, CommandOutput, call, call_with_store};

/// Puts one compiled program and one layer there, as far as showing and clearing is concerned.
fn fill(store: &Path) {
    assert_eq!(call_with_store(store, &["cache"]).code, Some(0));
    let shard = store.join("compiled/aa");
    fs::create_dir(&shard).unwrap();
    fs::write(shard.join("a".repeat(64)), [0; 2048]).unwrap();
    let layer = store.join("layers").join("b".repeat(64));
    fs::create_dir_all(layer.join("tree/deep")).unwrap();
    fs::write(layer.join("tree/deep/file"), "contents").unwrap();
    let manifest = "about = \"go: the standard library\"\ncreated = \"2026-01-15T10:30:00Z\"\n\
                    files = 1\nbytes = 8\nhash = \"\"\n";
    fs::write(layer.join("manifest.toml"), manifest).unwrap();
}

/// How many compiled programs and layers there are.
fn counts(store: &Path) -> (u64, usize) {
    let json = call_with_store(store, &["cache", "--json"]).json();
    (json["compiled"]["entries"].as_u64().unwrap(), json["layers"].as_array().unwrap().len())
}

#[test]
fn a_new_store_is_made_and_empty() {
    let root = tempfile::tempdir().unwrap();
    let store = root.path().join("store");
    assert_eq!(counts(&store), (0, 0));
    assert_eq!(store.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn what_is_kept_is_shown_as_table_and_as_json() {
    let root = tempfile::tempdir().unwrap();
    fill(root.path());
    let text = call_with_store(root.path(), &["cache"]).stdout;
    let place = root.path().canonicalize().unwrap().display().to_string();
    for part in [&place, "1 program, 2.0 KiB, max 1.0 GiB", "bbbbbbbbbbbb ", "the standard"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let json = call_with_store(root.path(), &["cache", "--json"]).json();
    assert_eq!(json["directory"], place);
    assert_eq!(json["compiled"]["bytes"], 2048);
    assert_eq!(json["compiled"]["most_bytes"], 1 << 30);
    assert_eq!(json["layers"][0]["key"], "b".repeat(64));
    assert_eq!(json["layers"][0]["about"], "go: the standard library");
    assert_eq!(json["layers"][0]["created"], "2026-01-15T10:30:00Z");
}

#[test]
fn clearing_removes_what_was_named_and_says_how_much() {
    let compiled = "removed 1 compiled program, 2.0 KiB freed\n";
    let layers = "removed 1 layer, 8 B freed\n";
    for (flags, said, left) in [
        (&["--compiled"][..], compiled.to_owned(), (0, 1)),
        (&["--layers"], layers.to_owned(), (1, 0)),
        (&["--layers", "--compiled"], format!("{compiled}{layers}"), (0, 0)),
        (&[], format!("{compiled}{layers}"), (0, 0)),
    ] {
        let root = tempfile::tempdir().unwrap();
        fill(root.path());
        let answer = call_with_store(root.path(), &[&["cache", "clear"], flags].concat());
        assert_eq!((answer.code, answer.stdout), (Some(0), said), "{flags:?}");
        assert_eq!(counts(root.path()), left, "{flags:?}");
    }
}

#[test]
fn an_invalid_size_names_its_variable() {
    let root = tempfile::tempdir().unwrap();
    let mut command = Command::new(BINARY);
    command.env("SANDBOX_RUN_STORE", root.path()).env("SANDBOX_RUN_CACHE_SIZE", "much");
    let answer: CommandOutput = command.arg("cache").output().unwrap().into();
    answer.is_refused_with(&["SANDBOX_RUN_CACHE_SIZE", "'much'"]);
}

#[test]
fn a_store_that_others_can_write_is_not_used() {
    let root = tempfile::tempdir().unwrap();
    fs::set_permissions(root.path(), Permissions::from_mode(0o777)).unwrap();
    let answer = call_with_store(root.path(), &["cache"]);
    assert_eq!(answer.code, Some(125), "{answer:?}");
    assert!(answer.stderr.contains("777") && answer.stderr.contains("chmod 700"), "{answer:?}");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}

#[test]
fn the_help_states_where_the_store_is() {
    let help = call(&["cache", "--help"]).stdout;
    for part in ["clear", "--json", "SANDBOX_RUN_STORE", "SANDBOX_RUN_CACHE_SIZE"] {
        assert!(help.contains(part), "no {part:?} in {help}");
    }
    call(&["cache", "burn"]).is_refused_with(&["'burn'"]);
}
