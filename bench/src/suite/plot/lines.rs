//! Lines over numbers, both axes logarithmic.

use super::canvas::{Anchor, Canvas, LEFT, TOP, WIDTH};
use super::colour;
use super::scale::Scale;

const HEIGHT: f64 = 360.0;
/// The legend stands to the right.
const LEGEND: f64 = 220.0;

pub(in super::super) struct Lines {
    pub(in super::super) title: String,
    /// What is counted on the axis across.
    pub(in super::super) across: &'static str,
    pub(in super::super) unit: &'static str,
    pub(in super::super) series: Vec<Line>,
}

pub(in super::super) struct Line {
    pub(in super::super) name: String,
    pub(in super::super) points: Vec<(f64, f64)>,
}

impl Lines {
    pub(in super::super) fn draw(&self) -> String {
        let (right, bottom) = (WIDTH - LEGEND, TOP + HEIGHT);
        let mut canvas = Canvas::titled(&self.title, bottom + 50.0);
        let points = || self.series.iter().flat_map(|line| &line.points);
        let across = Scale::around(points().map(|(x, _)| *x), LEFT, right);
        let up = Scale::around(points().map(|(_, y)| *y), bottom, TOP);
        for (x, name) in across.ticks() {
            canvas.line((x, TOP), (x, bottom), "#dddddd");
            canvas.text(x, bottom + 16.0, Anchor::Middle, &name);
        }
        for (y, name) in up.ticks() {
            canvas.line((LEFT, y), (right, y), "#dddddd");
            canvas.text(LEFT - 6.0, y + 4.0, Anchor::End, &name);
        }
        canvas.line((LEFT, bottom), (right, bottom), "#333333");
        canvas.line((LEFT, TOP), (LEFT, bottom), "#333333");
        let middle = f64::midpoint(LEFT, right);
        let both = format!("{} (both axes logarithmic)", self.across);
        canvas.text(middle, bottom + 34.0, Anchor::Middle, &both);
        canvas.text(LEFT - 6.0, TOP - 8.0, Anchor::End, self.unit);
        for (place, line) in self.series.iter().enumerate() {
            let points: Vec<_> =
                line.points.iter().map(|(x, y)| (across.place(*x), up.place(*y))).collect();
            canvas.path(&points, colour(place));
        }
        let entries: Vec<(&str, &str)> = self
            .series
            .iter()
            .enumerate()
            .map(|(place, line)| (colour(place), &*line.name))
            .collect();
        canvas.legend(right + 16.0, TOP + 10.0, &entries);
        canvas.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_there() {
        let line =
            |name: &str| Line { name: name.to_owned(), points: vec![(1.0, 2.0), (10.0, 3.0)] };
        let lines = Lines {
            title: "title".to_owned(),
            across: "workers",
            unit: "ms",
            series: vec![line("a"), line("b")],
        };
        assert_eq!(lines.draw().matches("<circle").count(), 4);
    }
}
