//! Data under construction: the containers that are still open, innermost last, and the string being written.
//! Tracks which containers were announced to the reader, so that the reader's current state can be computed
//! at any time.

use serde_json::{Map, Value};

use super::field;

#[derive(Debug, Default)]
pub(super) struct PartialValue {
    frames: Vec<Frame>,
    /// The current string, as far as it was received.
    text: String,
    in_text: bool,
    /// The path of the current value.
    path: String,
    /// The complete data, once it is closed.
    whole: Option<Map<String, Value>>,
}

#[derive(Debug)]
struct Frame {
    container: Container,
    /// The container exists for the reader even while it is empty.
    announced: bool,
    /// Length of the path of the container.
    path_bytes: usize,
}

#[derive(Debug)]
enum Container {
    Object { map: Map<String, Value>, key: String },
    Array(Vec<Value>),
}

/// Which parts are included in a view of incomplete data.
#[derive(Clone, Copy, Debug)]
pub(super) enum PartialView {
    /// Everything received.
    All,
    /// The announced parts, with the first `text` bytes of the current string.
    Announced { text: Option<usize> },
}

impl PartialValue {
    /// Starts the data.
    pub(super) fn begin(&mut self) {
        self.frames.clear();
        self.text.clear();
        self.in_text = false;
        self.whole = None;
        self.path.clear();
        self.path.push_str(field::ROOT);
        // Most data is flat, and a stream holds this as long as it is open.
        self.frames.reserve_exact(1);
        self.frames.push(Frame {
            container: Container::Object {
                map: Map::new(),
                key: String::new(),
            },
            announced: true,
            path_bytes: self.path.len(),
        });
    }

    /// Whether the data has begun and is not yet closed.
    pub(super) fn is_open(&self) -> bool {
        !self.frames.is_empty()
    }

    pub(super) fn in_text(&self) -> bool {
        self.in_text
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The path of the current value.
    pub(super) fn field(&self) -> &str {
        &self.path
    }

    pub(super) fn key(&mut self, name: &str) {
        if let Some(Frame {
            container: Container::Object { key, .. },
            ..
        }) = self.frames.last_mut()
        {
            key.clear();
            key.push_str(name);
        }
    }

    /// Moves to the next value. True if its key occurred before, so that it replaces that value.
    pub(super) fn locate(&mut self) -> bool {
        let Some(frame) = self.frames.last() else {
            return false;
        };
        self.path.truncate(frame.path_bytes);
        match &frame.container {
            Container::Object { map, key } => {
                field::push_key(&mut self.path, key);
                map.contains_key(key)
            }
            Container::Array(items) => {
                field::push_index(&mut self.path, items.len());
                false
            }
        }
    }

    /// Opens a container as the current value.
    pub(super) fn open(&mut self, empty: Value, announced: bool) {
        let container = match empty {
            Value::Array(items) => Container::Array(items),
            _ => Container::Object {
                map: Map::new(),
                key: String::new(),
            },
        };
        self.frames.push(Frame {
            container,
            announced,
            path_bytes: self.path.len(),
        });
    }

    /// Closes the innermost container, which becomes the current value. Returns it if it is empty and was not
    /// announced.
    pub(super) fn close(&mut self) -> Option<Value> {
        let frame = self.frames.pop()?;
        self.path.truncate(frame.path_bytes);
        let value = frame.container.into_value();
        let empty = !frame.announced && is_empty(&value);
        let unannounced = empty.then(|| value.clone());
        if self.frames.is_empty() {
            self.whole = Some(into_map(value));
        } else {
            self.put(value);
        }
        unannounced
    }

    /// Sets the current value to a scalar or another complete value.
    pub(super) fn put(&mut self, value: Value) {
        if let Some(frame) = self.frames.last_mut() {
            frame.container.put(value);
        }
    }

    pub(super) fn append(&mut self, text: &str) {
        self.in_text = true;
        self.text.push_str(text);
    }

    pub(super) fn end_text(&mut self) {
        self.in_text = false;
        let text = std::mem::take(&mut self.text);
        self.put(Value::String(text));
    }

    /// Replaces the data by complete data.
    pub(super) fn replace(&mut self, whole: Map<String, Value>) {
        *self = Self {
            whole: Some(whole),
            ..Self::default()
        };
    }

    /// The complete data, if it is closed.
    pub(super) fn complete(&self) -> Option<&Map<String, Value>> {
        self.whole.as_ref()
    }

    /// The data as if it ended here.
    pub(super) fn view(&self, view: PartialView) -> Map<String, Value> {
        if let Some(whole) = &self.whole {
            return whole.clone();
        }
        let text = match view {
            PartialView::All => self.in_text.then_some(self.text.len()),
            PartialView::Announced { text } => text,
        };
        let text = text.and_then(|bytes| self.text.get(..bytes));
        let mut value = text.map(Value::from);
        for frame in self.frames.iter().rev() {
            let mut container = frame.container.copy();
            if let Some(inner) = value {
                container.put(inner);
            }
            let outer = container.into_value();
            let counts = matches!(view, PartialView::All) || frame.announced || !is_empty(&outer);
            value = counts.then_some(outer);
        }
        value.map(into_map).unwrap_or_default()
    }
}

impl Container {
    fn put(&mut self, value: Value) {
        match self {
            Self::Object { map, key } => {
                map.insert(key.clone(), value);
            }
            Self::Array(items) => items.push(value),
        }
    }

    fn copy(&self) -> Self {
        match self {
            Self::Object { map, key } => Self::Object {
                map: map.clone(),
                key: key.clone(),
            },
            Self::Array(items) => Self::Array(items.clone()),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Object { map, .. } => Value::Object(map),
            Self::Array(items) => Value::Array(items),
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn into_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
