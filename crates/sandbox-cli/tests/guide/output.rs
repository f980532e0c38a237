//! Compares the output of a command with the guide.

/// Whether the lines are those of the manual. There, a line `...` stands for any lines, and `...` within a
/// line for any text. Figures in the line that sums an execution up are never twice the same.
pub(crate) fn matches(expected: &[&str], printed: &[&str]) -> bool {
    let Some((first, rest)) = expected.split_first() else {
        return printed.is_empty();
    };
    if *first == "..." {
        return (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]));
    }
    let Some((line, below)) = printed.split_first() else {
        return false;
    };
    line_matches(&without_figures(first), &without_figures(line)) && matches(rest, below)
}

fn line_matches(expected: &str, printed: &str) -> bool {
    let mut parts = expected.split("...");
    let Some(mut left) = parts.next().and_then(|first| printed.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else {
        return left.is_empty();
    };
    for part in between {
        let Some(at) = left.find(part) else {
            return false;
        };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

/// The line with its times and sizes replaced, if it is the one that sums an execution up.
fn without_figures(line: &str) -> String {
    if !line.starts_with(['✓', '✗']) {
        return line.to_owned();
    }
    let words: Vec<&str> = line.split(' ').collect();
    let is_figure = |word: &str| word.parse::<f64>().is_ok();
    let mut result = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let kind = match *word {
            "ms" | "s" => "time",
            "B" | "KiB" | "MiB" | "GiB" => "size",
            other => other,
        };
        let has_unit = |word: &&str| matches!(*word, "ms" | "s" | "B" | "KiB" | "MiB" | "GiB");
        let is_measured = is_figure(word) && words.get(at + 1).is_some_and(has_unit);
        result.push(if is_measured { "N" } else { kind });
    }
    result.join(" ")
}

#[test]
fn a_comparison_that_should_fail_does() {
    let check = |expected: &'static str, printed: &'static str| {
        let lines = |text: &'static str| text.lines().collect::<Vec<_>>();
        matches(&lines(expected), &lines(printed))
    };
    for (expected, printed) in [
        ("", ""),
        ("a\nb", "a\nb"),
        ("a\n...\nb", "a\nb"),
        ("a\n...\nb", "a\nx\ny\nb"),
        ("id ... end", "id 5 end"),
        ("✓ completed in 16 ms · cpu 1 ms", "✓ completed in 1.2 s · cpu 9 ms"),
    ] {
        assert!(check(expected, printed), "{expected:?} is not {printed:?}");
    }
    for (expected, printed) in [
        ("", "a"),
        ("a", ""),
        ("a\nb", "a"),
        ("a", "a\nb"),
        ("a\n...\nb", "a\nx"),
        ("id ... end", "id 5"),
        ("in 16 ms", "in 17 ms"),
        ("✓ completed in 16 ms", "✗ timeout in 16 ms"),
        ("✗ exit code 3 in 16 ms", "✗ exit code 4 in 16 ms"),
    ] {
        assert!(!check(expected, printed), "{expected:?} is {printed:?}");
    }
}
