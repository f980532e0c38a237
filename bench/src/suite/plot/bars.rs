//! Groups of horizontal bars, on a logarithmic axis.

use super::canvas::{Anchor, Canvas, TOP, WIDTH};
use super::colour;
use super::scale::Scale;

const BAR: f64 = 14.0;
const GAP: f64 = 10.0;
/// Names stand to the left of the bars, figures to the right.
const NAMES: f64 = 200.0;
const FIGURES: f64 = 70.0;

pub(in super::super) struct Bars {
    pub(in super::super) title: String,
    pub(in super::super) unit: &'static str,
    pub(in super::super) series: Vec<String>,
    pub(in super::super) groups: Vec<Group>,
}

/// A value for each series, where there is one.
pub(in super::super) struct Group {
    pub(in super::super) name: String,
    pub(in super::super) values: Vec<Option<f64>>,
}

impl Bars {
    pub(in super::super) fn draw(&self) -> String {
        let group_height = |group: &Group| {
            let bars: f64 = group.values.iter().flatten().map(|_| BAR).sum();
            bars + GAP
        };
        let legend_height: f64 = self.series.iter().map(|_| 16.0).sum();
        let bottom = TOP + self.groups.iter().map(group_height).sum::<f64>();
        let mut canvas = Canvas::titled(&self.title, bottom + 50.0 + legend_height);
        let values = self.groups.iter().flat_map(|group| group.values.iter().flatten().copied());
        let scale = Scale::around(values, NAMES, WIDTH - FIGURES);
        for (x, name) in scale.ticks() {
            canvas.line((x, TOP), (x, bottom), "#dddddd");
            canvas.text(x, bottom + 16.0, Anchor::Middle, &name);
        }
        canvas.text(
            f64::midpoint(NAMES, WIDTH - FIGURES),
            bottom + 32.0,
            Anchor::Middle,
            self.unit,
        );
        let mut y = TOP;
        for group in &self.groups {
            let middle = y + (group_height(group) - GAP) / 2.0 + 4.0;
            canvas.text(NAMES - 8.0, middle, Anchor::End, &group.name);
            for (place, value) in group.values.iter().enumerate() {
                if let Some(value) = value {
                    let end = scale.place(*value);
                    canvas.rectangle(NAMES, y, end - NAMES, BAR - 2.0, colour(place));
                    canvas.text(end + 5.0, y + 10.0, Anchor::Start, &format!("{value:.2}"));
                    y += BAR;
                }
            }
            y += GAP;
        }
        canvas.line((NAMES, TOP), (NAMES, bottom), "#333333");
        let entries: Vec<(&str, &str)> =
            self.series.iter().enumerate().map(|(place, name)| (colour(place), &**name)).collect();
        canvas.legend(NAMES, bottom + 54.0, &entries);
        canvas.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_bar_and_what_is_missing_has_none() {
        let group = Group { name: "one".to_owned(), values: vec![Some(1.0), None] };
        let bars = Bars {
            title: "title".to_owned(),
            unit: "ms",
            series: vec!["a".to_owned(), "b".to_owned()],
            groups: vec![group],
        };
        // The background, one bar, and two in the legend.
        assert_eq!(bars.draw().matches("<rect").count(), 4);
    }
}
