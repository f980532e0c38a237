//! Finds the position of the code in the result of a template.
//!
//! The template is rendered a second time, with markers before the first and after the last visible character of the code.
//! Markers there survive filters such as `indent` and `trim` and do not affect them. If the two results differ in more than
//! the markers, the template changed the code in another way, and no position is reported rather than a wrong one.

use sandbox_core::Snippet;

/// Unicode noncharacters, which no text contains.
const BEGIN: char = '\u{fdd0}';
const END: char = '\u{fdd1}';

/// The code with markers; `None` for blank code.
pub(super) fn marked(code: &str) -> Option<String> {
    let visible = code.trim();
    let (lead, trail) = (&code[..lead_length(code)], &code[code.trim_end().len()..]);
    (!visible.is_empty()).then(|| format!("{lead}{BEGIN}{visible}{END}{trail}"))
}

/// The position of the code in `text`, given the result for the marked code; the first one, if there are several.
pub(super) fn locate(template: &str, code: &str, text: &str, marked: &str) -> Option<Snippet> {
    if marked.replace([BEGIN, END], "") != text {
        return None;
    }
    let begin = marked.find(BEGIN)?;
    let visible = &marked[begin + BEGIN.len_utf8()..];
    let visible = &visible[..visible.find(END)?];
    let (lead, own) = (&code[..lead_length(code)], code.trim());
    if newlines(visible) != newlines(own) {
        return None;
    }
    let before = &text[..begin];
    let start = newlines(before) + 1;
    let lines = start..=start + newlines(visible);
    let program: Vec<&str> = text.split('\n').collect();
    let template: Vec<&str> = template.split('\n').collect();
    let (above, below) = (&program[..start - 1], &program[*lines.end()..]);
    let head = matching(template.iter().zip(above));
    let tail = matching(template.iter().rev().zip(below.iter().rev()));
    Some(Snippet {
        first: newlines(lead) + 1,
        first_indent: width_of_last_line(before).saturating_sub(width_of_last_line(lead)),
        indent: indent_below_first(visible, own),
        lines,
        head,
        tail: program.len() - tail + 1,
        tail_in_template: template.len().saturating_sub(tail) + 1,
    })
}

fn lead_length(code: &str) -> usize {
    code.len() - code.trim_start().len()
}

fn newlines(text: &str) -> usize {
    text.matches('\n').count()
}

fn width_of_last_line(text: &str) -> usize {
    text.rsplit('\n').next().unwrap_or_default().chars().count()
}

/// The indent of the lines below the first. It is the same for all, so the first nonblank line shows it.
fn indent_below_first(moved: &str, own: &str) -> usize {
    let margin = |line: &str| line.chars().take_while(|letter| letter.is_whitespace()).count();
    let mut pairs = moved.split('\n').zip(own.split('\n')).skip(1);
    let told = pairs.find(|(_, own)| !own.trim().is_empty());
    told.map_or(0, |(moved, own)| margin(moved).saturating_sub(margin(own)))
}

/// Number of leading line pairs that correspond. Plain text lines must be equal. A line with a placeholder can have become
/// anything, even several lines; it counts only if a later plain line matches.
fn matching<'a>(pairs: impl Iterator<Item = (&'a &'a str, &'a &'a str)>) -> usize {
    let (mut sure, mut count) = (0, 0);
    for (template, program) in pairs {
        count += 1;
        let is_plain = !["{{", "{%", "{#"].iter().any(|begin| template.contains(begin));
        if is_plain && template != program {
            return sure;
        }
        if is_plain && !template.trim().is_empty() {
            sure = count;
        }
    }
    sure
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::render;
    use sandbox_core::LineOrigin;
    use std::collections::BTreeMap;

    fn rendered(template: &str, code: &str) -> (String, Option<Snippet>) {
        let values = BTreeMap::from([("three".to_owned(), "x\ny\nz".to_owned())]);
        let rendered = render(template, Some(code), &values).unwrap();
        (rendered.text, rendered.snippet)
    }

    fn found(template: &str, code: &str) -> Snippet {
        let (text, snippet) = rendered(template, code);
        snippet.unwrap_or_else(|| panic!("the code was not found in {text:?}"))
    }

    #[test]
    fn the_code_comes_out_byte_for_byte_with_its_lines() {
        for code in ["a\nb", "a\r\nb\r\n", "\u{fdd0}", "{{ three }}", "é\0"] {
            let (text, snippet) = rendered("1\n2\n{{ code }}\n", code);
            assert_eq!(text, format!("1\n2\n{code}\n"));
            if code != "\u{fdd0}" {
                assert_eq!(*snippet.unwrap().lines.start(), 3, "{code:?}");
            }
        }
    }

    #[test]
    fn moved_code_is_found_with_what_it_was_moved_by() {
        let snippet = found("if x:\n  {{ code | indent(2) }}\n", "\n\n a\n\nb\n");
        // The blank lines come first, and are blank lines in the program too.
        assert_eq!((snippet.lines, snippet.first), (4..=6, 3));
        assert_eq!((snippet.first_indent, snippet.indent), (2, 2));
        let snippet = found("if x:\n    {{ code | trim | indent(4) }}\n", "\n\na\n  b\n\n");
        assert_eq!((snippet.lines, snippet.first), (2..=3, 3));
        assert_eq!((snippet.first_indent, snippet.indent), (4, 4));
        let snippet = found("f({{ code }})", "a\n b");
        assert_eq!((snippet.lines, snippet.first_indent, snippet.indent), (1..=2, 2, 0));
        let block = "{% filter indent(3) %}x\n{{ code }}{% endfilter %}";
        let snippet = found(block, "a\nb");
        assert_eq!((snippet.lines, snippet.first_indent, snippet.indent), (2..=3, 3, 3));
    }

    #[test]
    fn of_several_places_it_is_the_first() {
        assert_eq!(found("1\n{{ code }}\n{{ code }}\n", "a\nb").lines, 2..=3);
        // The same text that is not the code does not count.
        assert_eq!(found("a\n{{ code }}\n", "a").lines, 2..=2);
    }

    #[test]
    fn no_position_is_reported_rather_than_a_wrong_one() {
        for (template, code) in [
            ("{{ code | length }} {{ code }}", "a"),
            ("{% if code == 'a' %}1\n{% endif %}{{ code }}", "a"),
            ("{{ code | replace('\n', ' ') }}", "a\nb"),
            ("no place for it", "a"),
            ("{{ code }}", " \n"),
        ] {
            assert_eq!(rendered(template, code).1, None, "{template}");
        }
    }

    #[test]
    fn lines_around_the_code_are_those_of_the_template() {
        let places = |template: &str, lines: &[usize]| {
            let snippet = found(template, "a\nb");
            lines.iter().map(|line| snippet.origin(*line)).collect::<Vec<_>>()
        };
        let template = "1 {{ three | length }}\n2\n{{ code }}\n4\n5";
        let told = places(template, &[1, 2, 5, 6]);
        assert_eq!(told, [1, 2, 4, 5].map(LineOrigin::Template));
        // A value of three lines: lines below it have other numbers, and no line can be reported for the
        // value itself.
        let template = "1\n{{ three }}\n3\n{{ code }}\n5\n{{ three }}\n7\n";
        let told = places(template, &[1, 2, 3, 4, 5, 8, 9, 12]);
        assert_eq!(told[0], LineOrigin::Template(1));
        assert_eq!(told[1..5], [2, 3, 4, 5].map(LineOrigin::Generated));
        assert_eq!(told[5], LineOrigin::Generated(8));
        assert_eq!(told[7], LineOrigin::Template(7));
    }
}
