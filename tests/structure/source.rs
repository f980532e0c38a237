//! Finds the module paths that a source file refers to.

use std::collections::BTreeSet;

use crate::tokens::{Token, tokens};

/// A path of modules below the crate root.
pub(crate) type Path = Vec<String>;

/// The parts of a file that decide which modules it depends on.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// Every path that begins with `crate`, `super` or `self`, from the crate root.
    pub(crate) paths: BTreeSet<Path>,
    /// Imports outside inline modules: the path as written, and the name that it introduces.
    pub(crate) imports: Vec<(Path, String)>,
    /// Names of the items defined outside inline modules.
    pub(crate) items: BTreeSet<String>,
    /// `#[cfg(test)]` modules in files of their own.
    pub(crate) test_modules: BTreeSet<Path>,
}

/// Parses the text of a module.
pub(crate) fn read(module: &[String], text: &str) -> Source {
    let mut source = Source::default();
    let tokens = without_tests(&tokens(text), module, &mut source.test_modules);
    // The enclosing inline modules, each with the brace depth at which it ends.
    let mut inside: Vec<(String, usize)> = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        let current = || {
            let inline = inside.iter().map(|(name, _)| name.clone());
            module.iter().cloned().chain(inline).collect::<Path>()
        };
        let word = match &tokens[at] {
            Token::Mark('{') => {
                depth += 1;
                at += 1;
                continue;
            }
            Token::Mark('}') => {
                depth -= 1;
                inside.pop_if(|(_, end)| *end == depth);
                at += 1;
                continue;
            }
            Token::Mark(_) => {
                at += 1;
                continue;
            }
            Token::Word(word) => word.as_str(),
        };
        match (word, tokens.get(at + 1)) {
            ("mod", Some(Token::Word(name))) if is(&tokens, at + 2, "{") => {
                inside.push((name.clone(), depth));
                depth += 1;
                at += 3;
            }
            ("use", _) if inside.is_empty() && depth == 0 => {
                let mut leaves = Vec::new();
                read_tree(&tokens, at + 1, &Path::new(), &mut leaves);
                source.imports.extend(leaves);
                at += 1;
            }
            ("fn" | "struct" | "enum" | "trait" | "type" | "const" | "static", Some(next))
                if inside.is_empty() && depth == 0 =>
            {
                if let Token::Word(name) = next {
                    source.items.insert(name.clone());
                }
                at += 1;
            }
            ("crate" | "super" | "self", _)
                if is_separator(&tokens, at + 1) && !is_path_part(&tokens, at) =>
            {
                let mut leaves = Vec::new();
                at = read_tree(&tokens, at, &Path::new(), &mut leaves);
                let current = current();
                let paths = leaves.iter().map(|(path, _)| from_root(&current, path));
                source.paths.extend(paths);
            }
            _ => at += 1,
        }
    }
    source
}

/// Resolves a leading `crate`, `super` or `self`.
fn from_root(module: &[String], path: &[String]) -> Path {
    let mut base = module.to_vec();
    let mut rest = path;
    while let [first, after @ ..] = rest {
        match first.as_str() {
            "crate" => base.clear(),
            "super" => drop(base.pop()),
            "self" => {}
            _ => break,
        }
        rest = after;
    }
    base.extend_from_slice(rest);
    base
}

/// Parses a path or a use tree, and returns the position after it.
fn read_tree(
    tokens: &[Token],
    mut at: usize,
    before: &[String],
    leaves: &mut Vec<(Path, String)>,
) -> usize {
    let mut path = before.to_vec();
    loop {
        match tokens.get(at) {
            Some(Token::Word(word)) => {
                path.push(word.clone());
                at += 1;
            }
            Some(Token::Mark('{')) => {
                at += 1;
                while !is(tokens, at, "}") {
                    let end = read_tree(tokens, at, &path, leaves);
                    // Skip a token that cannot start a use tree.
                    at = if end == at { end + 1 } else { end };
                    if is(tokens, at, ",") {
                        at += 1;
                    }
                    if at >= tokens.len() {
                        return at;
                    }
                }
                return at + 1;
            }
            Some(Token::Mark('*')) => {
                path.push("*".to_owned());
                at += 1;
            }
            _ => break,
        }
        if !is_separator(tokens, at) {
            break;
        }
        at += 2;
    }
    let mut name = path.last().cloned().unwrap_or_default();
    if name == "self" && path.len() > 1 {
        path.pop();
        name = path.last().cloned().unwrap_or_default();
    }
    if is(tokens, at, "as")
        && let Some(Token::Word(alias)) = tokens.get(at + 1)
    {
        name.clone_from(alias);
        at += 2;
    }
    if !path.is_empty() {
        leaves.push((path, name));
    }
    at
}

fn is(tokens: &[Token], at: usize, text: &str) -> bool {
    tokens.get(at).is_some_and(|token| token.is(text))
}

fn is_separator(tokens: &[Token], at: usize) -> bool {
    is(tokens, at, ":") && is(tokens, at + 1, ":")
}

/// Whether the word does not start a path: it follows `::`, or is part of `pub(in crate::x)`.
fn is_path_part(tokens: &[Token], at: usize) -> bool {
    (at >= 1 && is(tokens, at - 1, "in")) || (at >= 2 && is_separator(tokens, at - 2))
}

/// Removes every test-only item.
fn without_tests(
    tokens: &[Token],
    module: &[String],
    test_modules: &mut BTreeSet<Path>,
) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !is_test_only(tokens, at) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let start = at;
        while is(tokens, at, "#") {
            at = end_of_group(tokens, at + 1);
        }
        let first = at;
        while at < tokens.len() && !is(tokens, at, ";") {
            if is(tokens, at, "{") {
                at = end_of_group(tokens, at) - 1;
                break;
            }
            // A struct field ends at a comma. An item does not: its type parameters can contain one.
            if is(tokens, at, ",") && is(tokens, first + 1, ":") {
                break;
            }
            at = if is(tokens, at, "(") || is(tokens, at, "[") {
                end_of_group(tokens, at)
            } else {
                at + 1
            };
        }
        at += 1;
        let item = &tokens[start..at.min(tokens.len())];
        if let [.., Token::Word(keyword), Token::Word(name), Token::Mark(';')] = item
            && keyword == "mod"
        {
            let mut path = module.to_vec();
            path.push(name.clone());
            test_modules.insert(path);
        }
    }
    kept
}

/// Whether `#[cfg(test)]` or `#[cfg(all(test, …))]` is here.
fn is_test_only(tokens: &[Token], at: usize) -> bool {
    let begins = |words: &[&str]| words.iter().zip(at..).all(|(word, at)| is(tokens, at, word));
    begins(&["#", "[", "cfg", "(", "test", ")"])
        || begins(&["#", "[", "cfg", "(", "all", "(", "test", ","])
}

/// The position after the bracket that closes the one at this position.
fn end_of_group(tokens: &[Token], mut at: usize) -> usize {
    let mut depth = 0;
    while at < tokens.len() {
        match tokens[at] {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(module: &[&str], text: &str) -> Vec<String> {
        let module: Path = module.iter().map(ToString::to_string).collect();
        read(&module, text).paths.iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn paths_are_read_from_declarations_and_expressions() {
        let text = "use crate::{a::B, c::{self, d as e}, f::*};\n\
                    pub(crate) fn x() -> super::super::g::H { crate::i::<J>(crate::k::L) }\n\
                    pub(in crate::m) struct N; // crate::o\nconst P: &str = \"crate::q\";";
        assert_eq!(
            paths(&["own", "child"], text),
            ["a::B", "c", "c::d", "f::*", "g::H", "i", "k::L"]
        );
        assert_eq!(
            paths(&["own"], "mod inner { use super::super::a; use super::b; }"),
            ["a", "own::b"]
        );
    }

    #[test]
    fn test_only_items_are_ignored() {
        let text = "#[cfg(test)] use crate::a;\n#[cfg(test)] #[allow(x)] mod tests { use crate::b; }\n\
                    #[cfg(all(test, unix))] fn f<T, U>(x: [u8; 2]) { crate::c() }\n\
                    #[cfg(test)]\npub(crate) mod outside;\nstruct S { #[cfg(test)] x: crate::d::E, y: crate::f::G }\n\
                    use crate::h;";
        assert_eq!(paths(&["own"], text), ["f::G", "h"]);
        let source = read(&["own".to_owned()], text);
        assert_eq!(Vec::from_iter(source.test_modules), [["own", "outside"]]);
    }

    #[test]
    fn imports_and_items_of_a_root_are_known_by_name() {
        let source =
            read(&[], "pub use a::{B, c::D as E};\npub fn f() { use g::H; }\nmod i { use j::K; }");
        let imports: Vec<_> =
            source.imports.iter().map(|(path, name)| (path.join("::"), name.as_str())).collect();
        assert_eq!(imports, [("a::B".to_owned(), "B"), ("a::c::D".to_owned(), "E")]);
        assert_eq!(Vec::from_iter(source.items), ["f"]);
    }
}
