//! Puts the recipes and the attack programs of the source tree into the library, so that it needs no
//! files beside the executable. Every file in these folders is included; there is no list to maintain.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[expect(clippy::disallowed_methods, reason = "this is how cargo talks to a build script")]
fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let write = |name: &str, line: &dyn Fn(&str, &[File]) -> String| -> io::Result<()> {
        let directory = here.join("../..").join(name).canonicalize()?;
        // Cargo looks at everything below a directory that is named here.
        println!("cargo::rerun-if-changed={}", directory.display());
        let lines: String =
            folders(&directory)?.iter().map(|(name, files)| line(name, files)).collect();
        fs::write(out.join(format!("{name}.rs")), format!("&[\n{lines}]\n"))
    };
    write("attacks", &|class, files| format!("    ({class:?}, {}),\n", texts("attacks", files)))?;
    write("runtimes", &|language, files| {
        let lists = headers(files);
        let files = texts("runtimes", files);
        format!("    Folder {{ name: {language:?}, lists: [{lists}], files: {files} }},\n")
    })
}

/// A file by its name and where it is.
type File = (String, PathBuf);

/// The folders of a directory with their files.
fn folders(directory: &Path) -> io::Result<Vec<(String, Vec<File>)>> {
    let mut folders = Vec::new();
    for folder in sorted(directory)? {
        let path = directory.join(&folder);
        if path.is_dir() {
            let files = sorted(&path)?.into_iter().map(|name| (name.clone(), path.join(name)));
            let files: Vec<File> = files.collect();
            // Git knows no empty folders, but an editor may leave one.
            if !files.is_empty() {
                folders.push((folder, files));
            }
        }
    }
    Ok(folders)
}

/// Names and texts, as Rust.
fn texts(root: &str, files: &[File]) -> String {
    let mut list = String::from("&[");
    for (name, path) in files {
        // Named by way of the package's directory: the compiler then knows which tree it was, also where
        // several share their build output.
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
        let place = format!("/../../{root}/{}/{name}", folder.to_string_lossy());
        let package = "env!(\"CARGO_MANIFEST_DIR\")";
        let _ = write!(list, "({name:?}, include_str!(concat!({package}, {place:?}))), ");
    }
    list + "]"
}

/// The lists of a recipe that must be known before it is read, as Rust. A test in the library compares
/// them with what the reader of recipes finds.
fn headers(files: &[File]) -> String {
    let recipe = files.iter().find(|(name, _)| name == "runtime.toml");
    let recipe = recipe.and_then(|(_, path)| fs::read_to_string(path).ok()).unwrap_or_default();
    let keys = ["aliases", "extensions", "interpreters", "markers"];
    let list = |key: &str| {
        let begin = recipe.lines().find(|line| line.starts_with(&format!("{key} = [")));
        let begin = begin.and_then(|line| recipe.find(line));
        let value = begin.map_or("", |begin| recipe[begin..].split(']').next().unwrap_or_default());
        // What is quoted by double quotes is every second part.
        let words: Vec<&str> = value.split('"').skip(1).step_by(2).collect();
        format!("&{words:?}, ")
    };
    keys.map(list).concat()
}

/// The names in a directory, without hidden files, which editors leave.
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
