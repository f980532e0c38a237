//! Reads the files of `--input`.

use std::path::Path;

use super::paths::{absolute, work_path};
use super::program::SourceFile;
use super::read::{self, Budget};
use crate::errors::Failure;

/// Reads what `--input SRC[:DEST]` names: files, and directories with everything below them.
pub(crate) fn extra_files(
    inputs: &[String],
    notes: &mut Vec<String>,
) -> Result<Vec<SourceFile>, Failure> {
    let mut budget = Budget::new();
    let mut files = Vec::new();
    for input in inputs {
        let (source, destination) = split(input, &|path| path.exists());
        let source = Path::new(source);
        let destination = match destination {
            Some(destination) => destination.to_owned(),
            None => last_name(source)?,
        };
        if source.is_dir() {
            let walked = read::directory(source, &mut budget)?;
            notes.extend(walked.notes);
            // A directory may be copied to the work directory itself; a file needs a name.
            let prefix = match destination.trim_end_matches('/') {
                "" | "." => String::new(),
                destination => format!("{}/", work_path(destination)?),
            };
            files.extend(walked.files.into_iter().map(|file| SourceFile {
                path: format!("{prefix}{}", file.path),
                contents: file.contents,
            }));
        } else {
            let path = if destination.ends_with('/') {
                format!("{destination}{}", last_name(source)?)
            } else {
                destination
            };
            files.push(SourceFile {
                path: work_path(&path)?,
                contents: read::file(source, &mut budget)?,
            });
        }
    }
    Ok(files)
}

/// Splits at the last colon, unless the whole text names an existing file: file names may contain colons.
fn split<'a>(input: &'a str, exists: &dyn Fn(&Path) -> bool) -> (&'a str, Option<&'a str>) {
    match input.rsplit_once(':') {
        Some((source, destination)) if !source.is_empty() && !exists(Path::new(input)) => {
            (source, Some(destination))
        }
        _ => (input, None),
    }
}

fn last_name(source: &Path) -> Result<String, Failure> {
    let source = absolute(source)?;
    let name = source.file_name().and_then(|name| name.to_str());
    name.map(ToOwned::to_owned).ok_or_else(|| {
        Failure::Usage(format!(
            "cannot derive a destination from '{}': write --input SRC:DEST",
            source.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_and_directories_go_to_their_destination() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        fs::create_dir_all(data.join("deep")).unwrap();
        fs::write(data.join("deep/a.txt"), "a").unwrap();
        fs::write(root.path().join("b:c.txt"), "b").unwrap();
        let data = data.display();
        let odd = root.path().join("b:c.txt").display().to_string();
        let check = |input: &str, inside: &str| {
            let files = extra_files(&[input.to_owned()], &mut Vec::new()).unwrap();
            assert_eq!(files.len(), 1, "{input}");
            assert_eq!(files[0].path, inside, "{input}");
        };
        check(&format!("{data}"), "data/deep/a.txt");
        check(&format!("{data}:."), "deep/a.txt");
        check(&format!("{data}:x/y"), "x/y/deep/a.txt");
        check(&format!("{data}/deep/a.txt"), "a.txt");
        check(&format!("{data}/deep/a.txt:in/"), "in/a.txt");
        check(&odd, "b:c.txt");
        check(&format!("{odd}:d.txt"), "d.txt");
    }

    #[test]
    fn a_destination_outside_the_work_directory_is_refused() {
        let failure = extra_files(&["/etc/hostname:../x".to_owned()], &mut Vec::new()).unwrap_err();
        assert!(failure.message().unwrap().contains("'..'"));
    }
}
