//! The relative links of the documents lead to files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_relative_link_in_the_documents_leads_to_a_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut mistakes = Vec::new();
    for document in documents(&root) {
        let text = fs::read_to_string(&document).unwrap();
        for target in links(&text).filter(|target| !target.contains("://")) {
            let file = target.split('#').next().unwrap();
            if !document.parent().unwrap().join(file).exists() {
                mistakes.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(mistakes.is_empty(), "links that lead nowhere:\n{}", mistakes.join("\n"));
}

/// The Markdown files of the repository. Hidden directories and build output hold none of its own.
fn documents(root: &Path) -> Vec<PathBuf> {
    let mut documents = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            let is_own = !name.starts_with('.') && name != "target" && !path.is_symlink();
            if is_own && path.is_dir() {
                directories.push(path);
            } else if is_own && path.extension().is_some_and(|extension| extension == "md") {
                documents.push(path);
            }
        }
    }
    assert!(documents.len() > 10, "the documents are not where they were");
    documents
}

/// The targets of inline links, `[text](target)`, outside of code blocks.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    let lines = text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.flat_map(|line| line.split("](").skip(1).filter_map(|rest| rest.split(')').next()))
}

#[test]
fn links_are_found_outside_of_code_blocks() {
    let text = "[a](b.md), [c](d.md#e)\n```\n[f](g.md)\n```\n[h](i.md)";
    assert_eq!(links(text).collect::<Vec<_>>(), ["b.md", "d.md#e", "i.md"]);
}
