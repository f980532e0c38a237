//! The elements of an SVG picture.

use std::fmt::Write as _;

pub(super) const WIDTH: f64 = 900.0;
pub(super) const LEFT: f64 = 70.0;
pub(super) const TOP: f64 = 50.0;

/// How text stands to its point.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture that grows.
pub(super) struct Canvas {
    body: String,
    height: f64,
}

impl Canvas {
    pub(super) fn titled(title: &str, height: f64) -> Self {
        let mut canvas = Self { body: String::new(), height };
        canvas.rectangle(0.0, 0.0, WIDTH, height, "#ffffff");
        canvas.sized_text(LEFT, 28.0, Anchor::Start, 16.0, title);
        canvas
    }

    pub(super) fn rectangle(&mut self, x: f64, y: f64, width: f64, height: f64, colour: &str) {
        let _ = writeln!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{colour}"/>"#
        );
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.body,
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{colour}"/>"#
        );
    }

    pub(super) fn path(&mut self, points: &[(f64, f64)], colour: &str) {
        let list: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            self.body,
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#,
            list.join(" ")
        );
        for (x, y) in points {
            let _ =
                writeln!(self.body, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.5" fill="{colour}"/>"#);
        }
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        self.sized_text(x, y, anchor, 11.0, text);
    }

    fn sized_text(&mut self, x: f64, y: f64, anchor: Anchor, size: f64, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{size}">{}</text>"#,
            escaped(text)
        );
    }

    /// One line for each series, below each other.
    pub(super) fn legend(&mut self, x: f64, y: f64, entries: &[(&str, &str)]) {
        let mut y = y;
        for (colour, name) in entries {
            self.rectangle(x, y - 9.0, 12.0, 10.0, colour);
            self.text(x + 18.0, y, Anchor::Start, name);
            y += 16.0;
        }
    }

    pub(super) fn finish(self) -> String {
        let Self { body, height } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"sans-serif\">\n{body}</svg>\n"
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let svg = Canvas::titled("a < b & c", 10.0).finish();
        assert!(svg.contains("a &lt; b &amp; c"));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }
}
