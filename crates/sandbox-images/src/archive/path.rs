use std::borrow::Cow;

/// The kernel's limit (`NAME_MAX`).
const MAX_NAME: usize = 255;
const MAX_SHOWN: usize = 200;

/// Splits a relative path into its components; none for the starting directory itself. Returns what is wrong with a
/// path that could leave that directory.
pub(crate) fn parse_path(path: &[u8], max_bytes: usize) -> Result<Vec<&[u8]>, Cow<'static, str>> {
    if path.is_empty() {
        return Err("has no name".into());
    }
    if path.starts_with(b"/") {
        return Err("has an absolute path".into());
    }
    if path.contains(&0) {
        return Err("has a zero byte in its name".into());
    }
    if path.len() > max_bytes {
        return Err(format!("has a path of more than {max_bytes} bytes").into());
    }
    let parts = path.split(|byte| *byte == b'/');
    let parts: Vec<&[u8]> = parts.filter(|part| !part.is_empty() && *part != b".").collect();
    if parts.contains(&&b".."[..]) {
        return Err("has '..' in its path".into());
    }
    if parts.iter().any(|part| part.len() > MAX_NAME) {
        return Err(format!("has a name of more than {MAX_NAME} bytes").into());
    }
    Ok(parts)
}

/// Formats a path for messages: one line, of limited length, without control characters.
pub(crate) fn printable(path: &[u8]) -> String {
    let path: String = String::from_utf8_lossy(path).chars().take(MAX_SHOWN).collect();
    path.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_split() {
        let parts: [&[u8]; 3] = [b"a", b"b\xff", b"..c"];
        assert_eq!(parse_path(b"./a//b\xff/./..c/", 100).unwrap(), parts);
        assert!(parse_path(b"./", 100).unwrap().is_empty());
    }

    #[test]
    fn other_paths_are_rejected_with_the_reason() {
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
            let found = parse_path(path.as_bytes(), 100).unwrap_err();
            assert!(found.contains(reason), "{path}: {found}");
        }
        assert!(parse_path(name.as_bytes(), 1000).unwrap_err().contains("255"));
    }
}
