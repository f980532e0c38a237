//! Programs that lie in files, and running them.

use std::path::{Path, PathBuf};

use sandbox::{Report, Request, RequestBuilder, Sandbox};
use sandbox_tests::backend::show;

/// A folder of this suite.
pub(crate) fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Executes a request that must be accepted, and prints the report for a failing test.
pub(crate) fn execute(sandbox: &Sandbox, request: RequestBuilder) -> Report {
    let request = request.build().expect("the request is a valid one");
    let report = sandbox.execute(request);
    let report = report.unwrap_or_else(|error| panic!("{}", sandbox::with_causes(&error)));
    show(&report);
    report
}

/// A request with these files, which starts where the language's convention says.
pub(crate) fn project(
    sandbox: &Sandbox,
    language: &str,
    mut files: Vec<(String, Vec<u8>)>,
) -> RequestBuilder {
    let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    let entry = sandbox.runtimes().project_entry(language, &paths);
    let entry = entry.unwrap_or_else(|| panic!("{language} has no entry among {paths:?}"));
    let position = paths.iter().position(|path| *path == entry).expect("the entry is one of them");
    files[..=position].rotate_right(1);
    let request = Request::builder(language);
    files.into_iter().fold(request, |request, (path, contents)| request.file(path, contents))
}

/// Every file below a directory, by its path from there, in the order of the paths.
pub(crate) fn files_below(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        let entries = std::fs::read_dir(&next);
        for entry in entries.unwrap_or_else(|error| panic!("{}: {error}", next.display())) {
            let path = entry.expect("a directory can be listed to its end").path();
            if path.is_dir() {
                left.push(path);
                continue;
            }
            let below = path.strip_prefix(directory).expect("it was found below");
            let name = below.to_str().expect("the names of our programs are text").to_owned();
            found.push((name, std::fs::read(&path).expect("our programs can be read")));
        }
    }
    found.sort();
    found
}
