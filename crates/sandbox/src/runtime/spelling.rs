/// The most similar candidate, if it is similar enough.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    // Allow one typo in a short word and two in a longer one.
    let letters = word.chars().count();
    let allowed = if letters < 5 { 1 } else { 2 };
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed && *distance < letters)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many letters must be added, dropped or changed (Levenshtein), by the usual two-row table.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (row_number, letter) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = row_number + 1;
        for (column, other) in right.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_changes() {
        for (left, right, expected) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("pyton", "python", 1),
            ("kitten", "sitting", 3),
            ("", "abc", 3),
        ] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
        }
    }

    #[test]
    fn a_typo_is_corrected_and_another_word_is_not() {
        let known = ["python", "bash", "c"];
        assert_eq!(nearest("pytohn", known.into_iter()), Some("python"));
        assert_eq!(nearest("bahs", known.into_iter()), None);
        assert_eq!(nearest("bas", known.into_iter()), Some("bash"));
        assert_eq!(nearest("d", known.into_iter()), None);
        assert_eq!(nearest("cobol", known.into_iter()), None);
    }
}
