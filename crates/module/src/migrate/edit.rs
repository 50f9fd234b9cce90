//! One small change to a document, stated on its value. The same edit is made on the text by `yaml` and
//! `json`; that both agree is what proves a text edit right.

use serde_json::{Map, Value};

/// Keys from the root to a container; a number stands for an item of a list.
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
    /// Another name for a key, in its place.
    Rename {
        at: Path,
        key: String,
        to: String,
    },
    /// Another value for a key or an item that exists.
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

/// Where a new key goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InsertAt {
    First,
    /// After this key, or last where it does not stand.
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
    /// What is edited, for people: `io.output`.
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

    /// Makes the edit on a value. `None` when its container is not there or of another kind.
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
