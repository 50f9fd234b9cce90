//! Parses YAML into JSON values: duplicate keys are refused, only `true` and `false` are booleans, and alias
//! expansion is bounded by a budget.

use std::fmt;

use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

use crate::limits;

/// Why a text is not acceptable YAML, with line and column if known.
#[derive(Debug)]
pub struct YamlError {
    pub message: String,
    pub kind: YamlErrorKind,
    pub line: Option<usize>,
    pub column: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YamlErrorKind {
    Syntax,
    DuplicateKey,
    Limit,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for YamlError {}

pub fn parse_yaml(text: &str) -> Result<Value, YamlError> {
    let budget = serde_saphyr::budget! {
        max_nodes: limits::YAML_NODES_MAX,
        max_depth: limits::YAML_NESTING_MAX,
    };
    let options = serde_saphyr::options! {
        budget: budget,
        duplicate_keys: DuplicateKeyPolicy::Error,
        strict_booleans: true,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| describe(&error))
}

fn describe(error: &serde_saphyr::Error) -> YamlError {
    let location = error.location();
    let error = error.without_snippet();
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    let (kind, message) = match error {
        serde_saphyr::Error::DuplicateMappingKey { .. } => (YamlErrorKind::DuplicateKey, duplicate(text)),
        serde_saphyr::Error::MultipleDocuments { .. } => (
            YamlErrorKind::Syntax,
            String::from("a second document begins here"),
        ),
        serde_saphyr::Error::UnknownAnchor { .. } => {
            (YamlErrorKind::Syntax, String::from("the alias has no anchor"))
        }
        serde_saphyr::Error::RecursiveReferencesRequireWeakTypes { .. } => (
            YamlErrorKind::Limit,
            String::from("the alias is inside its own anchor"),
        ),
        serde_saphyr::Error::NonFiniteFloat { .. } => (
            YamlErrorKind::Syntax,
            String::from("infinity and NaN are not allowed in a manifest"),
        ),
        _ => match limit(text) {
            Some(message) => (YamlErrorKind::Limit, String::from(message)),
            None => (YamlErrorKind::Syntax, String::from(text)),
        },
    };
    let position = |value: u64| usize::try_from(value).ok();
    YamlError {
        message,
        kind,
        line: location.and_then(|at| position(at.line())),
        column: location.and_then(|at| position(at.column())),
    }
}

fn duplicate(text: &str) -> String {
    let key = text
        .strip_prefix("duplicate mapping key: ")
        .and_then(|rest| rest.split(',').next())
        .unwrap_or("?");
    format!("the key `{key}` occurs twice in one mapping")
}

/// The exceeded budget; alias errors wrap the budget's own error, so only the text identifies it.
fn limit(text: &str) -> Option<&'static str> {
    if text.contains("Depth {") || text.contains("recursion") || text.contains("nesting") {
        Some("the YAML is nested too deeply")
    } else if text.contains("Nodes {") || text.contains("Events {") {
        Some("the YAML has too many values, aliases expanded")
    } else if text.contains("budget breached")
        || text.contains("alias replay")
        || text.contains("alias expansion")
    {
        Some("the YAML expands too far")
    } else {
        None
    }
}
