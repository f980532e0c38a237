// Writes to everything that another compilation could use: the toolchain, prepared layers, the system's
// libraries, the C compiler that links. What it managed to change it tells.
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Whether a file can be made in a directory, or any file in it opened for writing.
fn spoil(directory: &Path) -> bool {
    if std::fs::write(directory.join("spoilt"), "spoilt").is_ok() {
        return true;
    }
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.take(50).any(|entry| std::fs::OpenOptions::new().append(true).open(entry.path()).is_ok())
}

fn main() {
    let compiler = PathBuf::from(std::env::var("RUSTC").unwrap());
    let root = compiler.ancestors().nth(2).unwrap().to_owned();
    let mut places: Vec<PathBuf> = vec![root.join("bin"), root.join("lib"), root];
    for place in [
        "/", "/opt", "/opt/layers", "/usr", "/usr/bin", "/usr/lib", "/usr/include", "/usr/local/bin",
        "/usr/local/lib", "/etc", "/etc/ld.so.conf.d", "/lib", "/var", "/run", "/home", "/root",
        "/proc/sys/kernel",
    ] {
        places.push(place.into());
    }
    let mut loot = format!("looked at {} places\n", places.len());
    for place in places {
        if spoil(&place) {
            let _ = writeln!(loot, "spoilt {}", place.display());
        }
    }
    std::fs::write(format!("{}/loot", std::env::var("OUT_DIR").unwrap()), loot).unwrap();
}
