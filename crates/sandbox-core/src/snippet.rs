use std::ops::RangeInclusive;

/// Where the user's code is in a program that a template generated around it.
///
/// Compilers and runtimes count the lines of the generated program. This maps them to lines of the
/// user's code and of the template, so that error messages show line numbers that the user knows.
/// Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// Lines of the program that contain the code, without leading and trailing blank lines.
    pub lines: RangeInclusive<usize>,
    /// The line of the code that corresponds to the first of `lines`; above 1 if the code begins
    /// with blank lines.
    pub first: usize,
    /// Columns by which the first of these lines was indented.
    pub first_indent: usize,
    /// Columns by which the other lines were indented.
    pub indent: usize,
    /// Number of lines at the start of the program that equal the same lines of the template.
    pub head: usize,
    /// The first of the lines at the end of the program that equal the last lines of the template.
    pub tail: usize,
    /// The line of the template that corresponds to `tail`.
    pub tail_in_template: usize,
}

/// What a line of the program corresponds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineOrigin {
    /// A line of the user's code.
    Code {
        /// Line number.
        line: usize,
        /// Columns by which it was indented.
        indent: usize,
    },
    /// A line of the template.
    Template(usize),
    /// A line that the template generated and that corresponds to no single line of it: from a loop
    /// or a value.
    Generated(usize),
}

impl Snippet {
    /// What a line of the program corresponds to.
    pub fn origin(&self, line: usize) -> LineOrigin {
        if self.lines.contains(&line) {
            let below = line - self.lines.start();
            let indent = if below == 0 { self.first_indent } else { self.indent };
            LineOrigin::Code { line: self.first + below, indent }
        } else if line <= self.head {
            LineOrigin::Template(line)
        } else if line >= self.tail {
            LineOrigin::Template(line - self.tail + self.tail_in_template)
        } else {
            LineOrigin::Generated(line)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_place() {
        let snippet = Snippet {
            lines: 4..=6,
            first: 2,
            first_indent: 8,
            indent: 4,
            head: 2,
            tail: 8,
            tail_in_template: 5,
        };
        let places: Vec<LineOrigin> = (1..=9).map(|line| snippet.origin(line)).collect();
        assert_eq!(
            places,
            [
                LineOrigin::Template(1),
                LineOrigin::Template(2),
                LineOrigin::Generated(3),
                LineOrigin::Code { line: 2, indent: 8 },
                LineOrigin::Code { line: 3, indent: 4 },
                LineOrigin::Code { line: 4, indent: 4 },
                LineOrigin::Generated(7),
                LineOrigin::Template(5),
                LineOrigin::Template(6),
            ]
        );
    }
}
