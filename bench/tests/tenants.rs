//! One key of a server, attacked by another for a moment: it loses nothing. How much later its answers come is for
//! `make tenants`.

use std::process::Command;

#[test]
fn a_hostile_key_takes_nothing_from_another() {
    let quick =
        Command::new(env!("CARGO_BIN_EXE_sandbox-bench")).args(["tenants", "--quick"]).output();
    let quick = quick.unwrap();
    let text = String::from_utf8_lossy(&quick.stdout);
    assert!(quick.status.success(), "{text}{}", String::from_utf8_lossy(&quick.stderr));
    assert!(text.contains("untouched"), "{text}");
}
