//! Formats durations and sizes for people.

/// Formats a duration: `8.2 ms`, `120 ms`, `1.53 s`, `2 min 5 s`.
pub(super) fn format_millis(millis: f64) -> String {
    if millis < 9.95 {
        format!("{millis:.1} ms")
    } else if millis < 999.5 {
        format!("{millis:.0} ms")
    } else if millis < 119_995.0 {
        format!("{:.2} s", millis / 1000.0)
    } else {
        let seconds = (millis / 1000.0).round();
        format!("{:.0} min {:.0} s", (seconds / 60.0).floor(), seconds % 60.0)
    }
}

/// Formats a number of bytes: `5 B`, `1.5 KiB`, `8.2 MiB`.
#[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
pub(crate) fn format_size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut amount = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if amount < 1023.95 {
            break;
        }
        amount /= 1024.0;
        unit = larger;
    }
    format!("{amount:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_in_a_fitting_unit() {
        for (millis, text) in [
            (0.0, "0.0 ms"),
            (8.24, "8.2 ms"),
            (9.99, "10 ms"),
            (120.4, "120 ms"),
            (999.9, "1.00 s"),
            (1534.0, "1.53 s"),
            (125_000.0, "2 min 5 s"),
        ] {
            assert_eq!(format_millis(millis), text);
        }
    }

    #[test]
    fn sizes_are_shown_in_a_fitting_unit() {
        for (bytes, text) in [
            (5, "5 B"),
            (1024, "1.0 KiB"),
            (8_598_323, "8.2 MiB"),
            (1_048_570, "1.0 MiB"),
            (3 << 30, "3.0 GiB"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
    }
}
