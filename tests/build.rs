//! One test for each attack, so that a failure names it and they run side by side. There is no list to
//! keep: what lies in the folders of `attacks` is what is tested.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[expect(clippy::disallowed_methods, reason = "this is how cargo talks to a build script")]
fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let attacks = here.join("../attacks").canonicalize()?;
    let mut tests = String::new();
    for class in names(&attacks)? {
        if !attacks.join(&class).is_dir() {
            continue;
        }
        let _ = writeln!(tests, "mod {} {{", identifier(&class));
        for file in names(&attacks.join(&class))? {
            // A name that begins like this belongs to another attack.
            if file.starts_with('_') {
                continue;
            }
            let name = file.rsplit_once('.').map_or(file.as_str(), |(name, _)| name);
            let _ = writeln!(
                tests,
                "    #[test]\n    fn {}() {{ super::pair(\"{class}\", \"{name}\") }}",
                identifier(name)
            );
        }
        tests.push_str("}\n");
    }
    println!("cargo::rerun-if-changed={}", attacks.display());
    fs::write(out.join("attacks.rs"), tests)
}

fn identifier(name: &str) -> String {
    name.replace('-', "_")
}

fn names(directory: &Path) -> io::Result<Vec<String>> {
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
