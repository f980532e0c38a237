//! The results: text for people, JSON for machines, plots for both.

pub(super) mod json;
pub(super) mod plots;
pub(super) mod text;
