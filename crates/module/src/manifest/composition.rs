//! Composition of a module: the modules it requires, the pattern, and the data flow between them.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Composition {
    pub requires: Vec<Requirement>,
    pub pattern: Pattern,
    pub max_depth: u64,
    pub timeout_ms: u64,
    pub dataflow: Vec<Dataflow>,
    pub routing: Vec<Route>,
}

impl Default for Composition {
    fn default() -> Self {
        Self {
            requires: Vec::new(),
            pattern: Pattern::Sequential,
            max_depth: 5,
            timeout_ms: 60_000,
            dataflow: Vec::new(),
            routing: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    #[default]
    Sequential,
    Parallel,
    Conditional,
}

impl Pattern {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Parallel => "parallel",
            Self::Conditional => "conditional",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requirement {
    pub name: String,
    /// `1.2.3`, `>=1.0.0`, `^2.0.0`, `~1.4`, `*`; none means any.
    pub version: Option<String>,
    pub optional: bool,
    pub fallback: Option<String>,
    pub timeout_ms: Option<u64>,
}

impl Requirement {
    /// The accepted versions. A bare version means exactly that one, unlike in Cargo.
    pub fn range(&self) -> Result<semver::VersionReq, semver::Error> {
        let text = self.version.as_deref().unwrap_or("*").trim();
        if text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains([',', '*', 'x', 'X', '|', ' ']) {
            semver::Version::parse(text)?;
            return semver::VersionReq::parse(&format!("={text}"));
        }
        semver::VersionReq::parse(text)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dataflow {
    #[serde(deserialize_with = "one_or_many")]
    pub from: Vec<String>,
    #[serde(deserialize_with = "one_or_many")]
    pub to: Vec<String>,
    pub mapping: BTreeMap<String, String>,
    pub condition: Option<String>,
    pub aggregate: Option<Aggregate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregate {
    Merge,
    Array,
    First,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    pub condition: String,
    pub next: Option<String>,
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(name) => vec![name],
        OneOrMany::Many(names) => names,
    })
}
