//! Puts the recipes and the attack programs of the source tree into the library, so that it needs no
//! files beside the executable. There are no lists to keep: what lies in the folders is what is shipped.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[expect(clippy::disallowed_methods, reason = "this is how cargo talks to a build script")]
fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for name in ["attacks", "runtimes"] {
        let directory = here.join("../..").join(name).canonicalize()?;
        // Cargo looks at everything below a directory that is named here.
        println!("cargo::rerun-if-changed={}", directory.display());
        fs::write(out.join(format!("{name}.rs")), table(&directory)?)?;
    }
    Ok(())
}

/// The folders of a directory, each with the names and texts of its files.
fn table(directory: &Path) -> io::Result<String> {
    let mut table = String::from("&[\n");
    for folder in sorted(directory)? {
        let path = directory.join(&folder);
        if !path.is_dir() {
            continue;
        }
        let _ = writeln!(table, "    (\"{folder}\", &[");
        for name in sorted(&path)? {
            let file = path.join(&name).display().to_string();
            let _ = writeln!(table, "        (\"{name}\", include_str!({file:?})),");
        }
        table.push_str("    ]),\n");
    }
    table.push_str("]\n");
    Ok(table)
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
