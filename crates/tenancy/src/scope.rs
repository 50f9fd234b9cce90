//! Permissions of a caller. A scope is a keyword on a key; a set of scopes prints in a fixed order.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Start, resume and cancel runs.
    Execute,
    /// Read modules and runs.
    Read,
    /// Approve, reject or edit runs that wait for human review.
    Review,
    /// Read usage.
    Usage,
}

impl Scope {
    pub const ALL: [Self; 4] = [Self::Execute, Self::Read, Self::Review, Self::Usage];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Execute => "execute",
            Self::Read => "read",
            Self::Review => "review",
            Self::Usage => "usage",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        known.ok_or_else(|| {
            let words: Vec<_> = Self::ALL.iter().map(|scope| scope.as_str()).collect();
            format!("unknown scope `{text}`; known: {}", words.join(", "))
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scopes(BTreeSet<Scope>);

impl Scopes {
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }

    pub fn contains(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }

    /// The known scopes of a space-separated list; other words are ignored.
    pub fn known_in(words: &str) -> Self {
        words
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().collect())
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.0.iter().map(|scope| scope.as_str()).collect();
        f.write_str(&words.join(" "))
    }
}
