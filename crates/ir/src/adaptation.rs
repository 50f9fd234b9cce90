//! The ledger of adaptations: every field that was dropped, clamped, merged or otherwise changed in a
//! conversion, with its pointer, the reason and the component that changed it. No change is silent.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dialect::Dialect;
use crate::ext::Ext;

/// What was done to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Not in the result.
    Dropped,
    /// A number was clamped to the allowed range.
    Clamped,
    /// Present under another name with the same meaning.
    Renamed,
    /// Joined with its neighbour.
    Merged,
    /// Present in another form that lost information.
    Replaced,
    /// Not requested; required by the target.
    Added,
}

impl Action {
    /// Whether requested content was lost.
    pub const fn is_loss(self) -> bool {
        matches!(self, Self::Dropped | Self::Clamped | Self::Replaced)
    }
}

/// The component that made the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Component {
    Normalize,
    Router,
    Adapter,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adaptation {
    /// Pointer into the canonical document.
    pub pointer: String,
    pub action: Action,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Value>,
    pub reason: String,
    pub by: Component,
}

/// The short form of a loss for warnings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    pub pointer: String,
    pub action: Action,
    pub reason: String,
}

impl From<&Adaptation> for Loss {
    fn from(adaptation: &Adaptation) -> Self {
        Self {
            pointer: adaptation.pointer.clone(),
            action: adaptation.action,
            reason: adaptation.reason.clone(),
        }
    }
}

/// The request's policy for adaptations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Degradation {
    /// A loss is an error.
    Strict,
    /// A loss becomes a warning.
    #[default]
    Warn,
    /// A loss is only recorded.
    Allow,
}

/// Collects the adaptations of one conversion.
#[derive(Clone, Debug)]
pub struct Ledger {
    by: Component,
    entries: Vec<Adaptation>,
}

impl Ledger {
    pub fn new(by: Component) -> Self {
        Self {
            by,
            entries: Vec::new(),
        }
    }

    pub fn entries(&self) -> &[Adaptation] {
        &self.entries
    }

    pub fn into_entries(self) -> Vec<Adaptation> {
        self.entries
    }

    pub fn losses(&self) -> impl Iterator<Item = &Adaptation> {
        self.entries.iter().filter(|entry| entry.action.is_loss())
    }

    pub fn note(&mut self, pointer: impl Into<String>, action: Action, reason: impl Into<String>) {
        self.entries.push(Adaptation {
            pointer: pointer.into(),
            action,
            asked: None,
            applied: None,
            reason: reason.into(),
            by: self.by,
        });
    }

    pub fn dropped(&mut self, pointer: impl Into<String>, reason: impl Into<String>) {
        self.note(pointer, Action::Dropped, reason);
    }

    /// A changed value, with the requested and the applied value.
    pub fn changed(
        &mut self,
        pointer: impl Into<String>,
        action: Action,
        asked: impl Into<Value>,
        applied: impl Into<Value>,
        reason: impl Into<String>,
    ) {
        self.entries.push(Adaptation {
            pointer: pointer.into(),
            action,
            asked: Some(asked.into()),
            applied: Some(applied.into()),
            reason: reason.into(),
            by: self.by,
        });
    }

    /// Records every `ext` field of other dialects as dropped.
    pub fn foreign(&mut self, pointer: &str, ext: &Ext, target: Dialect) {
        for (name, key, _) in ext.foreign(target) {
            let key = escape(key);
            self.dropped(
                format!("{pointer}/ext/{name}/{key}"),
                format!("not supported by {target}"),
            );
        }
    }

    /// The first loss, if `degradation` is strict.
    pub fn refused(&self, degradation: Degradation) -> Option<&Adaptation> {
        (degradation == Degradation::Strict)
            .then(|| self.losses().next())
            .flatten()
    }
}

/// A key as a step of a JSON pointer.
pub fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
