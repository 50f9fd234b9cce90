//! YAML into JSON values: duplicate keys refused, only `true` and `false` are booleans, and nothing
//! expands beyond its budget.

use std::fmt;

use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

use crate::limits;

/// Why a text is not acceptable YAML, and where: a byte offset when one is known.
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
        max_depth: limits::NESTING_MAX,
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
    let kind = match error {
        serde_saphyr::Error::DuplicateMappingKey { .. } => YamlErrorKind::DuplicateKey,
        serde_saphyr::Error::Budget { .. } => YamlErrorKind::Limit,
        _ => YamlErrorKind::Syntax,
    };
    let position = |value: u64| usize::try_from(value).ok();
    YamlError {
        message: error.to_string(),
        kind,
        line: location.and_then(|at| position(at.line())),
        column: location.and_then(|at| position(at.column())),
    }
}
