use std::time::Duration;

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a duration: write a number with ms, s, m or h, such as 500ms, 10s or 1m")]
pub struct InvalidDuration {
    text: String,
}

/// Parses `500ms`, `10s`, `1.5s`, `1m` or `2h`.
pub fn parse_duration(text: &str) -> Result<Duration, InvalidDuration> {
    let invalid = || InvalidDuration { text: text.to_owned() };
    let number_length =
        text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = text.split_at(number_length);
    // A float parser also accepts forms such as "1e9" and "inf"; the check above excludes their
    // characters.
    let number: f64 = number.parse().map_err(|_| invalid())?;
    let seconds = match unit {
        "us" => 0.000_001,
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(invalid()),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|_| invalid())
}

/// Formats a duration so that [`parse_duration`] parses it, in the largest unit that fits.
pub fn format_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis < 1000 || !millis.is_multiple_of(100) {
        format!("{millis}ms")
    } else if !millis.is_multiple_of(1000) {
        format!("{}.{}s", millis / 1000, (millis % 1000) / 100)
    } else {
        format!("{}s", millis / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_parsed() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("1m"), Ok(Duration::from_mins(1)));
    }

    #[test]
    fn a_number_without_unit_or_sense_is_refused() {
        for text in ["", "10", "s", "-1s", "1d", "1e9s", "inf", "1..5s", "99999999999999999999h"] {
            assert!(parse_duration(text).is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for millis in [0, 1, 999, 1000, 1500, 1234, 60_000] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }
    }
}
