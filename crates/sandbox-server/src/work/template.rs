//! Untrusted templates. The library limits the steps and the result of a template, but not its intermediate strings, and a
//! few lines can double a string until memory is exhausted. A frame around code needs only the code, indented, so
//! nothing else is supported here.

use std::collections::BTreeMap;

use sandbox::template::{Rendered, render};

/// The maximum indentation, in spaces.
const MAX_INDENT: u8 = 64;
/// The maximum size of all inserted values together, which is also that of the result.
const MAX_TEXT_BYTES: usize = 16 << 20;
const SUPPORTED: &str = "only {{ code }}, {{ code | indent(4) }} and {{ code | indent(4, true) }} are taken here, and the \
     same with a name of template_values";

/// Fills a template with the code and the values, or says why not.
pub(super) fn fill(
    template: &str,
    code: Option<&str>,
    values: &BTreeMap<String, String>,
) -> Result<Rendered, String> {
    let mut places_of_code = 0;
    let mut text = 0_usize;
    for (position, _) in template.match_indices('{') {
        match template.as_bytes().get(position + 1) {
            Some(b'%' | b'#') => return Err(SUPPORTED.to_owned()),
            Some(b'{') => {
                let (expression, _) =
                    template[position + 2..].split_once("}}").ok_or("a {{ is not closed")?;
                let name = plain_name(expression).ok_or(SUPPORTED)?;
                places_of_code += usize::from(name == "code");
                text = text.saturating_add(values.get(name).map_or(0, String::len));
            }
            _ => {}
        }
    }
    if places_of_code > 1 {
        return Err("the code may stand in it only once".to_owned());
    }
    if text > MAX_TEXT_BYTES {
        return Err(format!("what is put into it is longer than {MAX_TEXT_BYTES} bytes"));
    }
    render(template, code, values).map_err(|error| error.to_string())
}

/// The name in `NAME`, or in `NAME | indent(N)` with `true` after the number or not.
fn plain_name(expression: &str) -> Option<&str> {
    // A minus sign at the edge takes white space away, as usual.
    let expression = expression.trim_matches('-').trim();
    let Some((name, filter)) = expression.split_once('|') else {
        return is_name(expression).then_some(expression);
    };
    let arguments = filter.trim().strip_prefix("indent")?.trim().strip_prefix('(')?;
    let mut arguments = arguments.strip_suffix(')')?.split(',').map(str::trim);
    let width: u8 = arguments.next()?.parse().ok()?;
    let name = name.trim();
    let is_plain = is_name(name)
        && width <= MAX_INDENT
        && arguments.all(|argument| matches!(argument, "true" | "false"));
    is_plain.then_some(name)
}

fn is_name(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    text.starts_with(is_letter)
        && text.chars().all(|letter| is_letter(letter) || letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_filled() {
        let filled = |template| fill(template, Some("a\nb"), &BTreeMap::new()).unwrap().text;
        assert_eq!(filled("<{{ code }}>"), "<a\nb>");
        assert_eq!(filled("{ {{code|indent(2, true)}} }\n"), "{   a\n  b }\n");
        assert_eq!(filled("x\n{{- code -}}\ny"), "xa\nby");
    }

    #[test]
    fn what_can_grow_is_refused() {
        for template in [
            "{% set a = code ~ code %}{{ code }}",
            "{{ code * 99999 }}",
            "{{ code ~ code }}",
            "{{ code | indent(200) }}",
            "{{ code | indent(4) | indent(4) }}",
            "{{ code | indent(4, code * 9) }}",
            "{{ code | replace('', code) }}",
            "{{ range(9) }}",
            "{{ code }}{{ code }}",
            "{{{ code }}}",
            "{# #}",
            "{{ code",
        ] {
            assert!(fill(template, Some("x"), &BTreeMap::new()).is_err(), "{template}");
        }
    }

    #[test]
    fn values_stand_beside_the_code() {
        let values = |text: &str| BTreeMap::from([("name".to_owned(), text.to_owned())]);
        let template = "{{ name }} = {{ name | indent(2) }} {{ code }}";
        let filled = fill(template, Some("x"), &values("a\nb")).unwrap().text;
        assert_eq!(filled, "a\nb = a\n  b x");
        assert!(fill("{{ other }}", Some("x"), &values("a")).unwrap_err().contains("other"));
        assert!(fill("{{ name * 9 }}", Some("x"), &values("a")).is_err());
        let twice = fill(template, Some("x"), &values(&" \n".repeat(MAX_TEXT_BYTES / 4 + 1)));
        assert!(twice.unwrap_err().contains("longer than"));
    }
}
