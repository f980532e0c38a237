//! Puts the attack programs of the source tree into the library, so that `doctor --attack` needs no
//! files beside the executable. There is no list to keep: what lies in the folders is what is shipped.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[expect(clippy::disallowed_methods, reason = "this is how cargo talks to a build script")]
fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let attacks = here.join("../../attacks").canonicalize()?;
    let mut table = String::from("&[\n");
    for class in sorted(&attacks)? {
        if !attacks.join(&class).is_dir() {
            continue;
        }
        for name in sorted(&attacks.join(&class))? {
            let path = attacks.join(&class).join(&name).display().to_string();
            let _ = writeln!(table, "    (\"{class}\", \"{name}\", include_str!({path:?})),");
        }
    }
    table.push_str("]\n");
    // Cargo looks at everything below a directory that is named here.
    println!("cargo::rerun-if-changed={}", attacks.display());
    fs::write(out.join("attacks.rs"), table)
}

/// The names in a directory; editors leave hidden files, which are none of ours.
fn sorted(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
