//! Paths into a value. Names may contain hyphens, as module names do.

use super::ExpressionError;
use super::scanner::Scanner;

/// `$` and what follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    pub segments: Vec<PathSegment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathSegment {
    /// `.name` or `['name']`; `.length` as the last segment is the length of a list or a string.
    Name(String),
    /// `[0]`
    Index(usize),
    /// `[*]`: every item.
    Every,
}

pub fn parse_path(text: &str) -> Result<Path, ExpressionError> {
    let mut scanner = Scanner::new(text);
    scanner.space();
    let path = take_path(&mut scanner)?;
    scanner.end()?;
    Ok(path)
}

pub(super) fn take_path(scanner: &mut Scanner<'_>) -> Result<Path, ExpressionError> {
    if !scanner.take("$") {
        return scanner.fail("a path must begin with `$`");
    }
    let mut segments = Vec::new();
    loop {
        if scanner.take(".") {
            let name = scanner.take_while(is_name);
            if name.is_empty() {
                return scanner.fail("expected a name after `.`");
            }
            segments.push(PathSegment::Name(String::from(name)));
        } else if scanner.take("[") {
            segments.push(bracket(scanner)?);
        } else {
            return Ok(Path { segments });
        }
    }
}

fn bracket(scanner: &mut Scanner<'_>) -> Result<PathSegment, ExpressionError> {
    let segment = if scanner.take("*") {
        PathSegment::Every
    } else if matches!(scanner.peek(), Some('\'' | '"')) {
        PathSegment::Name(scanner.quoted()?)
    } else {
        match scanner.take_while(|c| c.is_ascii_digit()).parse() {
            Ok(index) => PathSegment::Index(index),
            Err(_) => return scanner.fail("expected a number, `*` or a quoted name in brackets"),
        }
    };
    if scanner.take("]") {
        Ok(segment)
    } else {
        scanner.fail("`]` is missing")
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}
