//! Rust source as tokens: identifiers and punctuation. Comments and literals are dropped.

use std::iter::Peekable;
use std::str::Chars;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    Mark(char),
}

impl Token {
    pub(crate) fn is(&self, text: &str) -> bool {
        match self {
            Self::Word(word) => word == text,
            Self::Mark(mark) => text.chars().eq([*mark]),
        }
    }
}

pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(&next) = rest.peek() {
        if next.is_alphabetic() || next == '_' {
            word(&mut rest, &mut tokens);
        } else if next.is_ascii_digit() {
            take_name(&mut rest);
        } else {
            rest.next();
            match next {
                '/' if rest.next_if_eq(&'/').is_some() => {
                    rest.by_ref().find(|letter| *letter == '\n');
                }
                '/' if rest.next_if_eq(&'*').is_some() => skip_block_comment(&mut rest),
                '"' => skip_string(&mut rest, '"'),
                '\'' => skip_char_or_lifetime(&mut rest),
                space if space.is_whitespace() => {}
                mark => tokens.push(Token::Mark(mark)),
            }
        }
    }
    tokens
}

/// An identifier, or a literal with a prefix such as `r#"…"#`.
fn word(rest: &mut Peekable<Chars<'_>>, tokens: &mut Vec<Token>) {
    let name = take_name(rest);
    let is_raw = matches!(name.as_str(), "r" | "br" | "cr");
    match rest.peek() {
        Some('"') if is_raw => skip_raw_string(rest),
        Some('#') if is_raw => {
            let mut after = rest.clone();
            if after.find(|letter| *letter != '#') == Some('"') {
                skip_raw_string(rest);
            } else {
                // A raw identifier, `r#type`.
                rest.next();
                tokens.push(Token::Word(take_name(rest)));
            }
        }
        Some('"') if matches!(name.as_str(), "b" | "c") => {
            rest.next();
            skip_string(rest, '"');
        }
        Some('\'') if name == "b" => {
            rest.next();
            skip_string(rest, '\'');
        }
        _ => tokens.push(Token::Word(name)),
    }
}

fn take_name(rest: &mut Peekable<Chars<'_>>) -> String {
    std::iter::from_fn(|| rest.next_if(|letter| letter.is_alphanumeric() || *letter == '_'))
        .collect()
}

fn skip_string(rest: &mut Peekable<Chars<'_>>, end: char) {
    while let Some(letter) = rest.next() {
        if letter == '\\' {
            rest.next();
        } else if letter == end {
            return;
        }
    }
}

fn skip_raw_string(rest: &mut Peekable<Chars<'_>>) {
    let mut hashes = 0;
    while rest.next_if_eq(&'#').is_some() {
        hashes += 1;
    }
    rest.next();
    while rest.by_ref().any(|letter| letter == '"') {
        let mut found = 0;
        while found < hashes && rest.next_if_eq(&'#').is_some() {
            found += 1;
        }
        if found == hashes {
            return;
        }
    }
}

fn skip_char_or_lifetime(rest: &mut Peekable<Chars<'_>>) {
    let mut after = rest.clone();
    let first = after.next();
    if first == Some('\\') || after.next() == Some('\'') {
        skip_string(rest, '\'');
    } else {
        take_name(rest);
    }
}

fn skip_block_comment(rest: &mut Peekable<Chars<'_>>) {
    let mut depth = 1;
    while depth > 0 {
        match rest.next() {
            Some('*') if rest.next_if_eq(&'/').is_some() => depth -= 1,
            Some('/') if rest.next_if_eq(&'*').is_some() => depth += 1,
            Some(_) => {}
            None => return,
        }
    }
}

#[test]
fn comments_and_literals_are_dropped() {
    let text = r##"a/* b /* c */ d */ // e
        "f\"g" 'h' '\'' b'i' b"j" r"k" r#"l"m"# r#n 1_000u64 &'o p::q"##;
    let words: Vec<String> = tokens(text)
        .into_iter()
        .map(|token| match token {
            Token::Word(word) => word,
            Token::Mark(mark) => mark.to_string(),
        })
        .collect();
    assert_eq!(words, ["a", "n", "&", "p", ":", ":", "q"]);
}
