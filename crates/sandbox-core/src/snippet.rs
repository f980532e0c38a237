use std::ops::RangeInclusive;

/// Where a person's code lies in a program that a template made around it.
///
/// Compilers and runtimes count the lines of the whole program. This says which of them are the
/// person's, and which line of the template the others came from, so that their messages can be told in
/// numbers that somebody has seen. Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// Lines of the program that hold the code, without blank ones at its beginning and end.
    pub lines: RangeInclusive<usize>,
    /// The line of the code that the first of them is: more than 1 if the code begins with blank lines.
    pub first: usize,
    /// By how many columns the first of these lines was moved to the right.
    pub first_indent: usize,
    /// By how many columns the other lines were.
    pub indent: usize,
    /// How many lines at the beginning of the program are the lines of the template with those numbers.
    pub head: usize,
    /// The first of the lines at the end of the program that are the last lines of the template.
    pub tail: usize,
    /// The line of the template that `tail` came from.
    pub tail_in_template: usize,
}

/// Whose line it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// This line of the code, which was moved to the right by so many columns.
    Code {
        /// The line.
        line: usize,
        /// The columns.
        indent: usize,
    },
    /// This line of the template.
    Template(usize),
    /// A line that the template made in a way that has no single line: in a loop, or from a value.
    Made(usize),
}

impl Snippet {
    /// Whose line this line of the program is.
    pub fn place(&self, line: usize) -> Place {
        if self.lines.contains(&line) {
            let below = line - self.lines.start();
            let indent = if below == 0 { self.first_indent } else { self.indent };
            Place::Code { line: self.first + below, indent }
        } else if line <= self.head {
            Place::Template(line)
        } else if line >= self.tail {
            Place::Template(line - self.tail + self.tail_in_template)
        } else {
            Place::Made(line)
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
        let places: Vec<Place> = (1..=9).map(|line| snippet.place(line)).collect();
        assert_eq!(
            places,
            [
                Place::Template(1),
                Place::Template(2),
                Place::Made(3),
                Place::Code { line: 2, indent: 8 },
                Place::Code { line: 3, indent: 4 },
                Place::Code { line: 4, indent: 4 },
                Place::Made(7),
                Place::Template(5),
                Place::Template(6),
            ]
        );
    }
}
