//! Templates from strangers. The library bounds the steps and the result of a template, but not the
//! texts that it makes on the way, and a few lines can double a text until the memory is gone. What a
//! frame around code needs is the code, moved to the right: only that is taken here.

use std::collections::BTreeMap;

use sandbox::template::{Rendered, render};

/// Deeper than code is nested.
const WIDEST_INDENT: u8 = 64;
const WHAT_IS_TAKEN: &str =
    "only {{ code }}, {{ code | indent(4) }} and {{ code | indent(4, true) }} are taken here";

/// Fills a template with the code, or says why not.
pub(super) fn fill(template: &str, code: Option<&str>) -> Result<Rendered, String> {
    let mut places = 0;
    for (position, _) in template.match_indices('{') {
        match template.as_bytes().get(position + 1) {
            Some(b'%' | b'#') => return Err(WHAT_IS_TAKEN.to_owned()),
            Some(b'{') => {
                let (expression, _) =
                    template[position + 2..].split_once("}}").ok_or("a {{ is not closed")?;
                if !is_plain(expression) {
                    return Err(WHAT_IS_TAKEN.to_owned());
                }
                places += 1;
            }
            _ => {}
        }
    }
    if places > 1 {
        return Err("the code may stand in it only once".to_owned());
    }
    render(template, code, &BTreeMap::new()).map_err(|error| error.to_string())
}

/// `code`, or `code | indent(N)` with `true` after it or not.
fn is_plain(expression: &str) -> bool {
    // A minus sign at the edge takes white space away, as usual.
    let expression = expression.trim_matches('-').trim();
    let Some((name, filter)) = expression.split_once('|') else {
        return expression == "code";
    };
    let arguments = filter
        .trim()
        .strip_prefix("indent")
        .and_then(|rest| rest.trim().strip_prefix('('))
        .and_then(|rest| rest.strip_suffix(')'));
    let Some(mut arguments) = arguments.map(|list| list.split(',').map(str::trim)) else {
        return false;
    };
    let width = arguments.next().and_then(|text| text.parse::<u8>().ok());
    name.trim() == "code"
        && width.is_some_and(|width| width <= WIDEST_INDENT)
        && arguments.all(|argument| matches!(argument, "true" | "false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_filled() {
        let filled = |template| fill(template, Some("a\nb")).unwrap().text;
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
            assert!(fill(template, Some("x")).is_err(), "{template}");
        }
    }
}
