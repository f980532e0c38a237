//! Code templates: text around the user's code, with placeholders that are filled before anything runs.
//!
//! The result contains the position of the code, so that errors can be reported in lines of the code: pass
//! [`Rendered::snippet`] to the request.
//!
//! Templates are Jinja templates. `{{ code }}` is the code; every other value is a text given by name. A template cannot
//! read files, and its steps and its result are bounded. Intermediate texts are not: to accept untrusted templates, bound the
//! memory of the process.

mod locate;

use std::collections::BTreeMap;
use std::io::{self, Write};

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, ErrorKind, Template, UndefinedBehavior, Value};
use sandbox_core::Snippet;

/// Maximum number of steps: far more than any useful template takes, and well under a second.
const FUEL: u64 = 1_000_000;
/// Maximum size of the result. Larger data belongs into a file.
const MAX_RESULT_BYTES: usize = 16 * 1024 * 1024;
const NAME: &str = "template";

/// Why a template could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// A placeholder has no value.
    #[error("line {line} of the template needs a value for '{name}', which was not given")]
    Missing {
        /// The placeholder.
        name: String,
        /// Its line.
        line: usize,
    },
    /// `code` was given both as the code and as a value.
    #[error("'code' was given twice: as the code itself, and as a value of that name")]
    CodeTwice,
    /// The template exceeds its steps or its result the maximum size.
    #[error("the template takes too long or becomes too large")]
    TooMuch,
    /// The template is invalid.
    #[error("line {line} of the template: {reason}")]
    Mistake {
        /// The line.
        line: usize,
        /// The reason.
        reason: String,
    },
}

/// The result of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rendered {
    /// The program.
    pub text: String,
    /// The position of the code in it; `None` if there is no code or the template changed it.
    pub snippet: Option<Snippet>,
}

/// Fills a template with the code and the values.
pub fn render(
    template: &str,
    code: Option<&str>,
    values: &BTreeMap<String, String>,
) -> Result<Rendered, TemplateError> {
    let mut context: BTreeMap<&str, &str> =
        values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    if let Some(code) = code
        && context.insert("code", code).is_some()
    {
        return Err(TemplateError::CodeTwice);
    }
    let environment = environment();
    let compiled =
        environment.template_from_named_str(NAME, template).map_err(|error| mistake(&error))?;
    let text = fill(&compiled, &context)
        .map_err(|error| explain(&error, &compiled, template, &context))?;
    let marked = code.and_then(locate::marked);
    let snippet = code.zip(marked.as_deref()).and_then(|(code, marked)| {
        context.insert("code", marked);
        // A template that cannot take the marks, for its bounds or for what it compares the code with,
        // is still a good one.
        let with_marks = fill(&compiled, &context).ok()?;
        locate::locate(template, code, &text, &with_marks)
    });
    Ok(Rendered { text, snippet })
}

fn fill(
    compiled: &Template<'_, '_>,
    context: &BTreeMap<&str, &str>,
) -> Result<String, minijinja::Error> {
    let mut result = Bounded(Vec::new());
    let pairs = context.iter().map(|(name, value)| (*name, *value));
    compiled.render_captured_to(Value::from_pairs(pairs), &mut result)?;
    Ok(String::from_utf8(result.0).expect("a template of text gives text"))
}

fn environment() -> Environment<'static> {
    let syntax = SyntaxConfig::builder()
        .keep_trailing_newline(true)
        .build()
        .expect("the usual delimiters are valid");
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_syntax(syntax);
    environment.set_fuel(Some(FUEL));
    // Both filters can create a text of any width from a short number, before our bounds take effect.
    environment.remove_filter("format");
    environment.add_filter("indent", indent);
    environment
}

/// The Jinja filter `indent`: indents all lines but the first and the empty ones; options include these too.
fn indent(text: &str, width: u8, first: Option<bool>, blank: Option<bool>) -> String {
    let space = " ".repeat(usize::from(width));
    let mut result = String::with_capacity(text.len());
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let is_blank = line.trim_end_matches(['\r', '\n']).is_empty();
        let is_taken = number > 0 || first.unwrap_or(false);
        if is_taken && (!is_blank || blank.unwrap_or(false)) {
            result.push_str(&space);
        }
        result.push_str(line);
    }
    result
}

fn explain(
    error: &minijinja::Error,
    compiled: &Template<'_, '_>,
    template: &str,
    context: &BTreeMap<&str, &str>,
) -> TemplateError {
    match error.kind() {
        ErrorKind::OutOfFuel | ErrorKind::WriteFailure => TemplateError::TooMuch,
        ErrorKind::UndefinedError => {
            let line = error.line().unwrap_or(1);
            match missing_name(compiled, template, line, context) {
                Some(name) => TemplateError::Missing { name, line },
                None => mistake(error),
            }
        }
        _ => mistake(error),
    }
}

/// The engine reports the line of a missing value but not its name: find the first undefined name on that line.
fn missing_name(
    compiled: &Template<'_, '_>,
    template: &str,
    line: usize,
    context: &BTreeMap<&str, &str>,
) -> Option<String> {
    let mut missing: Vec<String> = compiled
        .undeclared_variables(false)
        .into_iter()
        .filter(|name| !context.contains_key(name.as_str()))
        .collect();
    missing.sort();
    let text = template.lines().nth(line - 1).unwrap_or_default();
    let words: Vec<&str> = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    let first_on_line = words.iter().find(|word| missing.iter().any(|name| name == *word));
    match first_on_line {
        Some(name) => Some((*name).to_owned()),
        None => missing.into_iter().next(),
    }
}

fn mistake(error: &minijinja::Error) -> TemplateError {
    TemplateError::Mistake {
        line: error.line().unwrap_or(1),
        reason: error.detail().map_or_else(
            || error.kind().to_string(),
            |detail| format!("{}: {detail}", error.kind()),
        ),
    }
}

struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_RESULT_BYTES {
            return Err(io::Error::other("the result is too large"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(values: &[(&str, &str)]) -> BTreeMap<String, String> {
        values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn render(
        template: &str,
        code: Option<&str>,
        values: &BTreeMap<String, String>,
    ) -> Result<String, TemplateError> {
        super::render(template, code, values).map(|rendered| rendered.text)
    }

    #[test]
    fn code_and_values_are_filled_in_as_they_are() {
        let template = "# {{ who }}\n{{ code }}\n";
        let rendered = render(template, Some("a < b && '\"'"), &with(&[("who", "{{ me }}")]));
        assert_eq!(rendered.unwrap(), "# {{ me }}\na < b && '\"'\n");
    }

    #[test]
    fn a_missing_value_is_named_with_its_line() {
        let missing = |template: &str| render(template, Some("x"), &with(&[("given", "1")]));
        assert_eq!(
            missing("{{ code }}\n{{ given }} {{ wanted }}\n").unwrap_err(),
            TemplateError::Missing { name: "wanted".into(), line: 2 }
        );
        assert_eq!(
            missing("{{ first }}\n{{ another }}").unwrap_err().to_string(),
            "line 1 of the template needs a value for 'first', which was not given"
        );
        let no_code = render("\n{{ code }}", None, &BTreeMap::new()).unwrap_err();
        assert!(matches!(no_code, TemplateError::Missing { name, line: 2 } if name == "code"));
    }

    #[test]
    fn a_value_that_may_be_missing_can_have_a_default() {
        let rendered = render("{{ n | default('5') }}", None, &BTreeMap::new());
        assert_eq!(rendered.unwrap(), "5");
    }

    #[test]
    fn code_keeps_its_shape_inside_a_block() {
        let template = "def run():\n    {{ code | indent(4) }}\n";
        let rendered = render(template, Some("a = 1\n\nreturn a"), &BTreeMap::new());
        assert_eq!(rendered.unwrap(), "def run():\n    a = 1\n\n    return a\n");
        let from_the_first =
            render("{{ code | indent(2, true) }}", Some("a\n\nb"), &BTreeMap::new());
        assert_eq!(from_the_first.unwrap(), "  a\n\n  b");
        let all = render("{{ code | indent(1, true, true) }}", Some("a\n\nb"), &BTreeMap::new());
        assert_eq!(all.unwrap(), " a\n \n b");
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        for (template, line) in [("ok\n{{ code", 2), ("{% if %}", 1), ("\n{{ code | magic }}", 2)] {
            match render(template, Some("x"), &BTreeMap::new()) {
                Err(TemplateError::Mistake { line: told, .. }) => {
                    assert_eq!(told, line, "{template}");
                }
                other => panic!("{template}: {other:?}"),
            }
        }
    }

    #[test]
    fn files_cannot_be_included() {
        for template in ["{% include '/etc/passwd' %}", "{% extends 'x' %}"] {
            assert!(render(template, None, &BTreeMap::new()).is_err(), "{template}");
        }
    }

    #[test]
    fn a_template_that_does_not_stop_is_stopped() {
        let rounds =
            "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
        let large = "{% for a in range(9999) %}{{ code }}{% endfor %}";
        for template in [rounds, large] {
            assert_eq!(
                render(template, Some(&"x".repeat(100_000)), &BTreeMap::new()),
                Err(TemplateError::TooMuch),
                "{template}"
            );
        }
    }

    #[test]
    fn code_given_twice_is_refused() {
        let error = render("{{ code }}", Some("a"), &with(&[("code", "b")])).unwrap_err();
        assert_eq!(error, TemplateError::CodeTwice);
        assert_eq!(render("{{ code }}", None, &with(&[("code", "b")])).unwrap(), "b");
    }
}
