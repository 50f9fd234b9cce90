//! One layer of the configuration: a tree of values, and the origin of each value.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use module::diagnostic::{Location, Source};
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    /// A file, with the position of the value.
    File {
        path: PathBuf,
        location: Location,
    },
    Environment(String),
    /// A variable of a vendor, such as `OPENAI_API_KEY`, that is used if no back-end is configured.
    Vendor(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, location } => {
                write!(f, "{}:{}:{}", path.display(), location.line, location.column)
            }
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Vendor(name) => write!(f, "found in the environment: {name}"),
        }
    }
}

/// Values with their origins, by JSON pointer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    pub(crate) tree: Map<String, Value>,
    pub(crate) origins: BTreeMap<String, Origin>,
}

impl Layer {
    /// Parses the text of a TOML file. The error contains the message and the location.
    pub(crate) fn of_toml(path: &std::path::Path, text: &str) -> Result<Self, (String, Location)> {
        let name = path.display().to_string();
        let source = Source { file: &name, text };
        let table = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            (String::from(error.message()), source.locate(span))
        })?;
        let mut layer = Self::default();
        let at = |span| Origin::File {
            path: path.to_path_buf(),
            location: source.locate(span),
        };
        let mut origins = BTreeMap::new();
        layer.tree = table_of(table.get_ref(), "", &mut |pointer, span| {
            origins.insert(pointer, at(span));
        });
        layer.origins = origins;
        Ok(layer)
    }

    /// Sets one value and creates the tables of its path: `["routing", "policy"]`.
    pub(crate) fn set(&mut self, path: &[&str], value: Value, origin: Origin) {
        let Some((last, parents)) = path.split_last() else {
            return;
        };
        let mut table = &mut self.tree;
        for key in parents {
            let entry = table
                .entry(String::from(*key))
                .or_insert_with(|| Value::Object(Map::new()));
            if !entry.is_object() {
                *entry = Value::Object(Map::new());
            }
            let Value::Object(inner) = entry else { return };
            table = inner;
        }
        table.insert(String::from(*last), value);
        self.origins.insert(format!("/{}", path.join("/")), origin);
    }
}

type Visit<'v> = &'v mut dyn FnMut(String, std::ops::Range<usize>);

fn table_of(table: &DeTable<'_>, pointer: &str, visit: Visit<'_>) -> Map<String, Value> {
    let mut map = Map::new();
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let pointer = format!("{pointer}/{}", escape(name));
        visit(pointer.clone(), key.span());
        map.insert(String::from(name), value_of(value.get_ref(), &pointer, visit));
    }
    map
}

fn value_of(value: &DeValue<'_>, pointer: &str, visit: Visit<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            i64::from_str_radix(&digits, number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => number
            .as_str()
            .replace('_', "")
            .parse::<f64>()
            .map_or(Value::Null, Value::from),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(index, item)| {
                let pointer = format!("{pointer}/{index}");
                visit(pointer.clone(), item.span());
                value_of(item.get_ref(), &pointer, visit)
            });
            Value::Array(items.collect())
        }
        DeValue::Table(table) => Value::Object(table_of(table, pointer, visit)),
    }
}

/// A key as a token of a JSON pointer.
pub(crate) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
