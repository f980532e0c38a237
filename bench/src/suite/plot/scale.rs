//! A logarithmic axis.

/// From values to places on an axis.
pub(super) struct Scale {
    /// Powers of ten, the bounds of what is shown.
    first: i32,
    last: i32,
    /// Places of the bounds.
    from: f64,
    to: f64,
}

impl Scale {
    /// Whole powers of ten around all of these; values that are not above zero cannot be shown.
    pub(super) fn around(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let mut bounds: Option<(f64, f64)> = None;
        for value in values.into_iter().filter(|value| *value > 0.0 && value.is_finite()) {
            let (lowest, highest) = bounds.unwrap_or((value, value));
            bounds = Some((lowest.min(value), highest.max(value)));
        }
        let (lowest, highest) = bounds.unwrap_or((1.0, 10.0));
        let first = power(lowest.log10().floor());
        let last = power(highest.log10().ceil()).max(first + 1);
        Self { first, last, from, to }
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        let (first, last) = (f64::from(self.first), f64::from(self.last));
        let share = (value.max(f64::MIN_POSITIVE).log10() - first) / (last - first);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Where there are marks, and what stands there.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let tick = |power: i32| {
            let value = 10_f64.powi(power);
            let decimals = usize::try_from(-power).unwrap_or(0);
            (self.place(value), format!("{value:.decimals$}"))
        };
        (self.first..=self.last).map(tick).collect()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "what can be measured has few digits")]
fn power(number: f64) -> i32 {
    number as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_factors_are_equal_distances() {
        let scale = Scale::around([0.5, 50.0], 0.0, 300.0);
        assert!((scale.place(0.1) - 0.0).abs() < 1e-9);
        assert!((scale.place(1.0) - 100.0).abs() < 1e-9);
        assert!((scale.place(10.0) - 200.0).abs() < 1e-9);
        let names: Vec<String> = scale.ticks().into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["0.1", "1", "10", "100"]);
    }

    #[test]
    fn nothing_and_zero_can_be_asked_for() {
        let scale = Scale::around([0.0], 0.0, 10.0);
        assert!(scale.place(0.0).abs() < 1e-9);
        assert_eq!(scale.ticks().len(), 2);
    }
}
