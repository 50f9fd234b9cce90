//! An edit of a document, defined on its value. `yaml` and `json` apply the same edit to the text; a text
//! edit is correct if the edited text parses to the edited value.

use serde_json::{Map, Value};

/// Keys from the root to a container; a number is an index into a list.
pub(super) type Path = Vec<String>;

#[derive(Clone, Debug)]
pub(super) enum Edit {
    /// A new key in the mapping at `at`.
    Insert {
        at: Path,
        key: String,
        value: Value,
        place: InsertAt,
        /// Written above the key where the language has comments.
        comment: Option<&'static str>,
    },
    /// A new name for a key, at the same position.
    Rename {
        at: Path,
        key: String,
        to: String,
    },
    /// A new value for an existing key or item.
    Set {
        at: Path,
        key: String,
        value: Value,
    },
    Remove {
        at: Path,
        key: String,
    },
    /// A new last item of the list at `at`.
    Push {
        at: Path,
        value: Value,
    },
}

/// The position of a new key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InsertAt {
    First,
    /// After this key, or last if it does not exist.
    After(&'static str),
    Last,
}

pub(super) fn path(keys: &[&str]) -> Path {
    keys.iter().map(|&key| String::from(key)).collect()
}

/// The value at a path.
pub(super) fn get<'a>(root: &'a Value, at: &[String]) -> Option<&'a Value> {
    at.iter().try_fold(root, |value, key| step(value, key))
}

fn step<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map.get(key),
        Value::Array(list) => list.get(key.parse::<usize>().ok()?),
        _ => None,
    }
}

fn get_mut<'a>(root: &'a mut Value, at: &[String]) -> Option<&'a mut Value> {
    at.iter().try_fold(root, |value, key| match value {
        Value::Object(map) => map.get_mut(key),
        Value::Array(list) => list.get_mut(key.parse::<usize>().ok()?),
        _ => None,
    })
}

impl Edit {
    /// The edited path for messages, such as `io.output`.
    pub(super) fn place(&self) -> String {
        let (at, key) = match self {
            Self::Insert { at, key, .. }
            | Self::Rename { at, key, .. }
            | Self::Set { at, key, .. }
            | Self::Remove { at, key } => (at, Some(key)),
            Self::Push { at, .. } => (at, None),
        };
        let keys: Vec<&str> = at.iter().chain(key).map(String::as_str).collect();
        keys.join(".")
    }

    /// Applies the edit to a value. `None` if its container is missing or of another kind.
    pub(super) fn apply(&self, root: &mut Value) -> Option<()> {
        match self {
            Self::Insert { at, key, value, .. } => {
                let map = get_mut(root, at)?.as_object_mut()?;
                if map.contains_key(key) {
                    return None;
                }
                map.insert(key.clone(), value.clone());
            }
            Self::Rename { at, key, to } => {
                let map = get_mut(root, at)?.as_object_mut()?;
                if !map.contains_key(key) || map.contains_key(to) {
                    return None;
                }
                let renamed: Map<String, Value> = std::mem::take(map)
                    .into_iter()
                    .map(|(name, value)| {
                        if name == *key {
                            (to.clone(), value)
                        } else {
                            (name, value)
                        }
                    })
                    .collect();
                *map = renamed;
            }
            Self::Set { at, key, value } => {
                let mut whole = at.clone();
                whole.push(key.clone());
                *get_mut(root, &whole)? = value.clone();
            }
            Self::Remove { at, key } => {
                get_mut(root, at)?.as_object_mut()?.shift_remove(key)?;
            }
            Self::Push { at, value } => get_mut(root, at)?.as_array_mut()?.push(value.clone()),
        }
        Some(())
    }
}
