// Reads files of the host and hands them to the program, which prints them. CANARY is replaced by a path.
use std::fmt::Write;

fn main() {
    let mut loot = String::new();
    for path in ["CANARY", "/etc/shadow", "/root/.ssh/id_rsa", "/proc/1/environ", "/sys/kernel/notes"] {
        let found = std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let _ = writeln!(loot, "{path}: {found:?}");
    }
    std::fs::write(format!("{}/loot", std::env::var("OUT_DIR").unwrap()), loot).unwrap();
}
