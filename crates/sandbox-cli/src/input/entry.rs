//! Finds the entry point of a program with several files.

use std::path::Path;

use super::paths::work_path;
use super::program::{Languages, SourceFile, first_line};
use crate::errors::Failure;

/// Moves the named file to the front. It may be named relative to the project or, as a shell completes it, with the
/// project directory in front.
pub(super) fn put_first(
    files: &mut [SourceFile],
    entry: &str,
    project: Option<&Path>,
) -> Result<(), Failure> {
    let below = project.and_then(|project| Path::new(entry).strip_prefix(project).ok());
    let below = below.and_then(Path::to_str).unwrap_or(entry);
    let wanted = work_path(below)?;
    let position = files.iter().position(|file| file.path == wanted);
    let Some(position) = position else {
        return Err(Failure::Usage(format!("--entry '{entry}' is not a file of the program")));
    };
    files[..=position].rotate_right(1);
    Ok(())
}

/// Moves the entry point to the front: the file that the project's language starts at, `main.EXT` in the top directory,
/// or the only file.
pub(super) fn find(
    files: &mut [SourceFile],
    directory: &Path,
    language: Option<&str>,
    languages: Languages<'_>,
) -> Result<(), Failure> {
    if files.is_empty() {
        return Err(Failure::Usage(format!(
            "project directory '{}' has no files",
            directory.display()
        )));
    }
    if files.len() == 1 {
        return Ok(());
    }
    let language = language.map(languages.named).transpose()?;
    if let Some(entry) = by_convention(files, language.as_deref(), languages) {
        let position = files.iter().position(|file| file.path == entry).unwrap_or(0);
        files[..=position].rotate_right(1);
        return Ok(());
    }
    let fits = |file: &SourceFile| {
        let found = (languages.of_file)(&file.path, &first_line(&file.contents));
        match &language {
            Some(_) => found == language,
            None => found.is_some(),
        }
    };
    let mains: Vec<usize> = (0..files.len())
        .filter(|index| is_main(&files[*index].path) && fits(&files[*index]))
        .collect();
    let [position] = mains[..] else {
        let problem = if mains.is_empty() { "has no main file" } else { "has several main files" };
        return Err(Failure::Usage(format!(
            "project directory '{}' {problem}: name the entry point with --entry PATH",
            directory.display()
        )));
    };
    files[..=position].rotate_right(1);
    Ok(())
}

/// The entry point that the recipe of the project's language names.
fn by_convention(
    files: &[SourceFile],
    language: Option<&str>,
    languages: Languages<'_>,
) -> Option<String> {
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    if let Some(language) = language {
        return (languages.entry)(language, &paths);
    }
    let language = (languages.of_project)(&paths).or_else(|| common_language(files, languages));
    (languages.entry)(&language?, &paths)
}

/// The language of all files that have one, if it is the same.
fn common_language(files: &[SourceFile], languages: Languages<'_>) -> Option<String> {
    let known = |file: &SourceFile| (languages.of_file)(&file.path, &first_line(&file.contents));
    let mut found = files.iter().filter_map(known);
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

fn is_main(path: &str) -> bool {
    path.split_once('.').is_some_and(|(stem, extension)| stem == "main" && !extension.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_extension(name: &str, _: &str) -> Option<String> {
        let (_, extension) = name.rsplit_once('.')?;
        match extension {
            "py" => Some("python".into()),
            "c" => Some("c".into()),
            _ => None,
        }
    }

    fn first(paths: &[&str], language: Option<&str>) -> Result<String, String> {
        let mut files = files(paths);
        let languages = Languages {
            of_file: &by_extension,
            named: &|name| Ok(if name == "py" { "python" } else { name }.to_owned()),
            of_project: &|paths| paths.contains(&"Cargo.toml").then(|| "rust".to_owned()),
            entry: &|language, paths| {
                let usual = if language == "rust" { "src/main.rs" } else { "src/main.c" };
                paths.contains(&usual).then(|| usual.to_owned())
            },
        };
        find(&mut files, Path::new("project"), language, languages)
            .map(|()| files[0].path.clone())
            .map_err(|failure| failure.message().unwrap())
    }

    fn files(paths: &[&str]) -> Vec<SourceFile> {
        let file = |path: &&str| SourceFile { path: (*path).to_owned(), contents: Vec::new() };
        paths.iter().map(file).collect()
    }

    #[test]
    fn a_project_starts_at_its_main_file_or_its_only_file() {
        assert_eq!(first(&["lib/a.py", "main.py", "z.txt"], None).unwrap(), "main.py");
        assert_eq!(first(&["odd.txt"], None).unwrap(), "odd.txt");
        assert_eq!(first(&["main.c", "main.py"], Some("py")).unwrap(), "main.py");
        assert_eq!(first(&["a.py", "main.md", "main.py"], None).unwrap(), "main.py");
        let cargo = ["Cargo.toml", "main.py", "src/lib.rs", "src/main.rs"];
        assert_eq!(first(&cargo, None).unwrap(), "src/main.rs");
        assert_eq!(first(&cargo, Some("py")).unwrap(), "main.py");
        assert_eq!(first(&["notes.txt", "src/main.c", "src/util.c"], None).unwrap(), "src/main.c");
    }

    #[test]
    fn a_project_without_a_main_file_needs_entry() {
        for paths in [&["a.py", "b.py"][..], &["main.c", "main.py"], &["x/main.py", "b.py"], &[]] {
            let message = first(paths, None).unwrap_err();
            assert!(message.contains("--entry") || paths.is_empty(), "{message}");
        }
    }

    #[test]
    fn the_named_entry_comes_first_and_the_rest_keep_their_order() {
        let mut files = files(&["a.py", "b.py", "src/c.py", "d.py"]);
        put_first(&mut files, "project/./src/c.py", Some(Path::new("project/"))).unwrap();
        let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["src/c.py", "a.py", "b.py", "d.py"]);
        let failure = put_first(&mut files, "no.py", None).unwrap_err();
        assert!(failure.message().unwrap().contains("'no.py'"));
    }
}
