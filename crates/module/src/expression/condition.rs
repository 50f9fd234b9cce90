//! Conditions: comparisons joined by `&&`, `||` and `!`.

use serde_json::Value;

use super::ExpressionError;
use super::path::{Path, take_path};
use super::scanner::Scanner;
use crate::limits;

#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// True if at least one part is true.
    Any(Vec<Self>),
    /// True if all parts are true.
    All(Vec<Self>),
    Not(Box<Self>),
    Compare(Operand, Comparison, Operand),
    /// True if the path has a value.
    Exists(Path),
    /// True if the value is neither absent, null, false, zero nor empty.
    Truthy(Operand),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    Path(Path),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Longer operators first, so that `<=` is not read as `<`.
const COMPARISONS: &[(&str, Comparison)] = &[
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

pub fn parse_condition(text: &str) -> Result<Condition, ExpressionError> {
    let mut scanner = Scanner::new(text);
    let condition = any(&mut scanner, 0)?;
    scanner.end()?;
    Ok(condition)
}

fn any(scanner: &mut Scanner<'_>, depth: usize) -> Result<Condition, ExpressionError> {
    joined(scanner, depth, "||", all, Condition::Any)
}

fn all(scanner: &mut Scanner<'_>, depth: usize) -> Result<Condition, ExpressionError> {
    joined(scanner, depth, "&&", single, Condition::All)
}

fn joined(
    scanner: &mut Scanner<'_>,
    depth: usize,
    operator: &str,
    part: fn(&mut Scanner<'_>, usize) -> Result<Condition, ExpressionError>,
    join: fn(Vec<Condition>) -> Condition,
) -> Result<Condition, ExpressionError> {
    let first = part(scanner, depth)?;
    let mut parts = vec![first];
    loop {
        scanner.space();
        if !scanner.take(operator) {
            break;
        }
        parts.push(part(scanner, depth)?);
    }
    Ok(match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            join(parts)
        }
        None => join(parts),
    })
}

fn single(scanner: &mut Scanner<'_>, depth: usize) -> Result<Condition, ExpressionError> {
    if depth > limits::EXPRESSION_DEPTH_MAX {
        return scanner.fail("the condition is nested too deeply");
    }
    scanner.space();
    if scanner.take("!") {
        return Ok(Condition::Not(Box::new(single(scanner, depth + 1)?)));
    }
    if scanner.take("(") {
        let inner = any(scanner, depth + 1)?;
        scanner.space();
        return if scanner.take(")") {
            Ok(inner)
        } else {
            scanner.fail("`)` is missing")
        };
    }
    if scanner.take("exists(") {
        scanner.space();
        let path = take_path(scanner)?;
        scanner.space();
        return if scanner.take(")") {
            Ok(Condition::Exists(path))
        } else {
            scanner.fail("`)` is missing")
        };
    }
    let left = operand(scanner)?;
    scanner.space();
    match COMPARISONS.iter().find(|(token, _)| scanner.take(token)) {
        Some((_, comparison)) => {
            scanner.space();
            Ok(Condition::Compare(left, *comparison, operand(scanner)?))
        }
        None => Ok(Condition::Truthy(left)),
    }
}

fn operand(scanner: &mut Scanner<'_>) -> Result<Operand, ExpressionError> {
    match scanner.peek() {
        Some('$') => Ok(Operand::Path(take_path(scanner)?)),
        Some('\'' | '"') => Ok(Operand::Literal(Value::String(scanner.quoted()?))),
        Some(_) => word(scanner),
        None => scanner.fail("a value is missing"),
    }
}

fn word(scanner: &mut Scanner<'_>) -> Result<Operand, ExpressionError> {
    let start = scanner.rest();
    let word = scanner.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_'));
    let literal = match word {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        "null" => Some(Value::Null),
        word => serde_json::from_str::<Value>(word).ok().filter(Value::is_number),
    };
    match literal {
        Some(literal) => Ok(Operand::Literal(literal)),
        None if word.is_empty() => {
            let symbol: String = start.chars().take(1).collect();
            scanner.fail(format!("unexpected `{symbol}`"))
        }
        None => scanner.fail(format!(
            "`{word}` is neither a path nor a value; strings must be quoted"
        )),
    }
}
