//! What a Rust source file says to people: its string literals with the place they are used in, and the names
//! of its types. Reads tokens, not text, so comments and code that only tests compile are left out.

#[cfg(test)]
use std::collections::BTreeSet;

#[cfg(test)]
mod tests;

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// What a text is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Use {
    /// In `#[error(...)]`, `bail!`, `context(...)`, `hint(...)`.
    Error,
    /// The message of a log line.
    Log,
    /// Documentation of a command-line argument.
    Help,
    /// Any other sentence: diagnostics, warnings, progress, prompts, printed output.
    Text,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceText {
    pub(crate) used: Use,
    pub(crate) text: String,
}

/// The texts of a file that are sentences: at least two words.
pub(crate) fn messages(source: &str) -> Result<Vec<SourceText>> {
    let tokens = parse(source)?;
    let mut reader = Reader {
        help: source.contains("use clap::"),
        messages: Vec::new(),
        types: Vec::new(),
    };
    reader.walk(tokens, Use::Text, true);
    let mut messages = reader.messages;
    messages.retain(|message| is_sentence(&message.text));
    Ok(messages)
}

/// The names of the types that a file defines, associated types left out.
#[cfg(test)]
pub(crate) fn type_names(source: &str) -> Result<Vec<String>> {
    let mut reader = Reader {
        help: false,
        messages: Vec::new(),
        types: Vec::new(),
    };
    reader.walk(parse(source)?, Use::Text, true);
    Ok(reader.types)
}

/// The identifiers of a file and the words of its literals, with its tests and without comments and attributes.
#[cfg(test)]
pub(crate) fn words(source: &str) -> Result<BTreeSet<String>> {
    let mut words = BTreeSet::new();
    collect_words(parse(source)?, &mut words);
    Ok(words)
}

#[cfg(test)]
fn collect_words(tokens: TokenStream, words: &mut BTreeSet<String>) {
    let mut after_hash = false;
    for token in tokens {
        let is_hash = is_punct(Some(&token), '#') || (after_hash && is_punct(Some(&token), '!'));
        match token {
            TokenTree::Group(group) if after_hash && group.delimiter() == Delimiter::Bracket => {}
            TokenTree::Group(group) => collect_words(group.stream(), words),
            TokenTree::Ident(ident) => {
                words.insert(ident.to_string());
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let text = syn::parse_str::<syn::LitStr>(&text).map_or(text, |text| text.value());
                let split = text.split(|c: char| !c.is_ascii_alphanumeric());
                words.extend(split.map(String::from));
            }
            TokenTree::Punct(_) => {}
        }
        after_hash = is_hash;
    }
}

fn parse(source: &str) -> Result<TokenStream> {
    source
        .parse()
        .map_err(|error| anyhow::anyhow!("{error}"))
        .context("not Rust")
}

struct Reader {
    help: bool,
    messages: Vec<SourceText>,
    types: Vec<String>,
}

impl Reader {
    /// `items` is false inside of `impl` and `trait`, where `type` names an associated type.
    fn walk(&mut self, tokens: TokenStream, used: Use, items: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        let mut docs = String::new();
        let mut in_impl = false;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    let inner = usize::from(is_punct(tokens.get(at + 1), '!'));
                    if let Some(group) = group(tokens.get(at + 1 + inner), Delimiter::Bracket) {
                        at += 1 + inner;
                        if inner == 0 && self.attribute(group, &mut docs) {
                            at = end_of_item(&tokens, at + 1);
                        }
                    }
                }
                TokenTree::Ident(ident) => {
                    self.push_help(&mut docs);
                    let word = ident.to_string();
                    match word.as_str() {
                        "impl" | "trait" => in_impl = true,
                        "mod" => in_impl = false,
                        _ => {}
                    }
                    let defines = matches!(word.as_str(), "struct" | "enum" | "trait" | "union")
                        || (word == "type" && items);
                    if defines && let Some(TokenTree::Ident(name)) = tokens.get(at + 1) {
                        self.types.push(name.to_string());
                    }
                    let is_macro = is_punct(tokens.get(at + 1), '!');
                    let arguments = at + 1 + usize::from(is_macro);
                    if let Some(TokenTree::Group(arguments_group)) = tokens.get(arguments)
                        && (is_macro || arguments_group.delimiter() == Delimiter::Parenthesis)
                    {
                        if let Some(used) = use_in(&word, is_macro, used) {
                            self.walk(arguments_group.stream(), used, items && !in_impl);
                        }
                        at = arguments;
                    }
                }
                TokenTree::Group(group) => {
                    self.push_help(&mut docs);
                    self.walk(group.stream(), used, items && !in_impl);
                    if group.delimiter() == Delimiter::Brace {
                        in_impl = false;
                    }
                }
                TokenTree::Literal(literal) => {
                    self.push_help(&mut docs);
                    if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                        self.push(used, &text.value());
                    }
                }
                TokenTree::Punct(_) => {}
            }
            at += 1;
        }
    }

    /// Returns whether the item behind it is compiled for tests only.
    fn attribute(&mut self, attribute: &Group, docs: &mut String) -> bool {
        let mut tokens = attribute.stream().into_iter();
        let Some(TokenTree::Ident(name)) = tokens.next() else {
            return false;
        };
        match name.to_string().as_str() {
            "doc" if self.help => {
                if let Some(TokenTree::Literal(literal)) = tokens.nth(1)
                    && let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string())
                {
                    docs.push_str(&text.value());
                }
            }
            "error" => self.walk(tokens.collect(), Use::Error, false),
            "arg" | "command" | "value" => self.walk(tokens.collect(), Use::Help, false),
            "cfg" => return attribute.stream().to_string().contains("test"),
            _ => {}
        }
        false
    }

    fn push_help(&mut self, docs: &mut String) {
        let text = std::mem::take(docs);
        if !text.is_empty() {
            self.push(Use::Help, &text);
        }
    }

    fn push(&mut self, used: Use, text: &str) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.messages.push(SourceText { used, text });
    }
}

/// What the texts in a call or macro are used for; none where no person reads them.
fn use_in(name: &str, is_macro: bool, outside: Use) -> Option<Use> {
    match (name, is_macro) {
        ("trace" | "debug" | "info" | "warn" | "error", true) => Some(Use::Log),
        ("bail" | "anyhow" | "ensure", true) | ("context" | "with_context" | "hint", false) => {
            Some(Use::Error)
        }
        ("expect", false) => None,
        (
            "assert" | "assert_eq" | "assert_ne" | "debug_assert" | "panic" | "unreachable" | "include_str"
            | "concat" | "env",
            true,
        ) => None,
        _ => Some(outside),
    }
}

fn end_of_item(tokens: &[TokenTree], from: usize) -> usize {
    let mut at = from;
    while let Some(token) = tokens.get(at) {
        let ends = is_punct(Some(token), ';') || group(Some(token), Delimiter::Brace).is_some();
        if ends {
            return at;
        }
        at += 1;
    }
    at
}

fn is_punct(token: Option<&TokenTree>, char: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == char)
}

fn group(token: Option<&TokenTree>, delimiter: Delimiter) -> Option<&Group> {
    match token {
        Some(TokenTree::Group(group)) if group.delimiter() == delimiter => Some(group),
        _ => None,
    }
}

/// Two words of letters, and neither SQL nor JSON nor a format of ids and paths.
fn is_sentence(text: &str) -> bool {
    let words = text
        .split(' ')
        .filter(|word| word.len() > 1 && word.chars().all(|c| c.is_alphabetic() || "'.,:;`()-".contains(c)))
        .filter(|word| word.chars().any(char::is_lowercase))
        .count();
    words >= 2 && !text.starts_with(['{', '[', '<'])
}
