use std::borrow::Cow;

/// By the kernel.
const LONGEST_NAME: usize = 255;
const LONGEST_SHOWN: usize = 200;

/// The parts of a path that stays below where it starts, or what is wrong with it. None for the start itself.
pub(crate) fn plain(path: &[u8], longest: usize) -> Result<Vec<&[u8]>, Cow<'static, str>> {
    if path.is_empty() {
        return Err("has no name".into());
    }
    if path.starts_with(b"/") {
        return Err("has an absolute path".into());
    }
    if path.contains(&0) {
        return Err("has a zero byte in its name".into());
    }
    if path.len() > longest {
        return Err(format!("has a path of more than {longest} bytes").into());
    }
    let parts = path.split(|byte| *byte == b'/');
    let parts: Vec<&[u8]> = parts.filter(|part| !part.is_empty() && *part != b".").collect();
    if parts.contains(&&b".."[..]) {
        return Err("has '..' in its path".into());
    }
    if parts.iter().any(|part| part.len() > LONGEST_NAME) {
        return Err(format!("has a name of more than {LONGEST_NAME} bytes").into());
    }
    Ok(parts)
}

/// A name for people: one line, not too long, no control characters.
pub(crate) fn printable(path: &[u8]) -> String {
    let path: String = String::from_utf8_lossy(path).chars().take(LONGEST_SHOWN).collect();
    path.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_stay_below_are_taken_apart() {
        let parts: [&[u8]; 3] = [b"a", b"b\xff", b"..c"];
        assert_eq!(plain(b"./a//b\xff/./..c/", 100).unwrap(), parts);
        assert!(plain(b"./", 100).unwrap().is_empty());
    }

    #[test]
    fn others_are_refused_with_the_reason() {
        let long = "a/".repeat(60);
        let name = "a".repeat(256);
        for (path, reason) in [
            ("", "no name"),
            ("/etc/passwd", "absolute"),
            ("..", "'..'"),
            ("a/../b", "'..'"),
            ("a\0b", "zero byte"),
            (&long, "more than 100 bytes"),
            (&name, "more than 100 bytes"),
        ] {
            let found = plain(path.as_bytes(), 100).unwrap_err();
            assert!(found.contains(reason), "{path}: {found}");
        }
        assert!(plain(name.as_bytes(), 1000).unwrap_err().contains("255"));
    }
}
