//! Parses a page of the guide into steps.
//!
//! A block of `console` contains commands, each on a line that starts with `$ `, followed by their exact output. Any other
//! block is a file; the line above it is its name and a colon, as in `` `solve.py`: ``. Other blocks are errors, so that
//! everything a reader may copy is tested.

/// What stands under one heading of the second or third rank.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) steps: Vec<Step>,
}

/// Something a reader does.
#[derive(Debug)]
pub(crate) enum Step {
    /// Makes a file.
    File { path: String, contents: String },
    /// Types a command, which stands on this line of the page, and sees this.
    Command { line: usize, text: String, expected: Vec<String> },
}

/// A block that is being read.
enum Block {
    Console,
    File { path: String, contents: String },
}

/// The sections of a page that hold a block.
pub(crate) fn sections(page: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut block = None;
    let mut last_text = "";
    for (number, line) in (1..).zip(page.lines()) {
        let Some(section) = sections.last_mut() else {
            assert!(!line.starts_with("```"), "line {number}: a block before the first section");
            sections.extend(heading(line));
            continue;
        };
        match (&mut block, line.strip_prefix("```")) {
            (None, Some("console")) => block = Some(Block::Console),
            (None, Some(_)) => {
                let path = last_text.strip_prefix('`').and_then(|text| text.strip_suffix("`:"));
                let path = path.unwrap_or_else(|| panic!("line {number}: a block without a name"));
                block = Some(Block::File { path: path.to_owned(), contents: String::new() });
            }
            (None, None) => {
                sections.extend(heading(line));
                if !line.is_empty() {
                    last_text = line;
                }
            }
            (Some(_), Some("")) => {
                if let Some(Block::File { path, contents }) = block.take() {
                    section.steps.push(Step::File { path, contents });
                }
            }
            (Some(Block::File { contents, .. }), _) => {
                contents.push_str(line);
                contents.push('\n');
            }
            (Some(Block::Console), _) => console_line(section, number, line),
        }
    }
    assert!(block.is_none(), "the last block has no end");
    sections.retain(|section| !section.steps.is_empty());
    sections
}

/// The page with nothing on it but one section, which keeps its lines' numbers.
pub(crate) fn only(page: &str, title: &str) -> String {
    let (mut is_inside, mut is_block) = (false, false);
    let mut result = String::new();
    for line in page.lines() {
        if !is_block && let Some(section) = heading(line) {
            is_inside = section.title == title;
        }
        if line.starts_with("```") {
            is_block = !is_block;
        }
        if is_inside {
            result.push_str(line);
        }
        result.push('\n');
    }
    result
}

fn heading(line: &str) -> Option<Section> {
    let title = line.strip_prefix("## ").or_else(|| line.strip_prefix("### "))?;
    Some(Section { title: title.to_owned(), steps: Vec::new() })
}

fn console_line(section: &mut Section, number: usize, line: &str) {
    if let Some(text) = line.strip_prefix("$ ") {
        let (text, expected) = (text.to_owned(), Vec::new());
        section.steps.push(Step::Command { line: number, text, expected });
        return;
    }
    match section.steps.last_mut() {
        // A command goes on where its last line says so.
        Some(Step::Command { text, expected, .. })
            if expected.is_empty() && text.ends_with('\\') =>
        {
            text.push('\n');
            text.push_str(line);
        }
        Some(Step::Command { expected, .. }) => expected.push(line.to_owned()),
        _ => panic!("line {number}: output without a command"),
    }
}
