//! Plots as SVG: bars side by side, and lines over numbers. Both axes of numbers are logarithmic, because what
//! is compared differs by factors.

mod bars;
mod canvas;
mod lines;
mod scale;

pub(super) use bars::{Bars, Group};
pub(super) use lines::{Line, Lines};

/// Colours that colour-blind readers can distinguish; the first is the baseline.
const COLOURS: [&str; 12] = [
    "#777777", "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#f0e442",
    "#000000", "#8c510a", "#5e3c99", "#4d9221",
];

fn colour(place: usize) -> &'static str {
    COLOURS[place % COLOURS.len()]
}
