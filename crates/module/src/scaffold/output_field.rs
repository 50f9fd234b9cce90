//! The fields of the answer of a new module: given by name and type, or inferred from an example of an answer.
//! Each has a schema and an example value that matches it.

use std::fmt;

use serde_json::{Map, Value, json};

/// Longest name of a field.
const NAME_CHARS_MAX: usize = 64;
const FIELDS_MAX: usize = 50;

/// A field of `data`.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputField {
    pub name: String,
    pub required: bool,
    pub schema: Value,
    /// Matches the schema.
    pub example: Value,
}

/// Why a field cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub message: String,
    pub hint: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FieldError {}

const TYPES: &str = "string, number, integer, boolean, object, list, list:TYPE, or the allowed values as a|b|c; a \
                     `?` at the end makes the field optional";

impl OutputField {
    /// `vendor:string`, `items:list`, `prices:list:number`, `label:billing|bug`, `note:string?`.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let (name, kind) = text.split_once(':').unwrap_or((text, "string"));
        let (kind, required) = match kind.strip_suffix('?') {
            Some(kind) => (kind, false),
            None => (kind, true),
        };
        check_name(name)?;
        let typed = typed(kind).filter(|_| name != "rationale" || kind == "string");
        let Some((schema, example)) = typed else {
            return Err(FieldError {
                message: format!("`{kind}` is not a type for the field `{name}`"),
                hint: format!("types: {TYPES}"),
            });
        };
        Ok(Self {
            name: String::from(name),
            required,
            schema,
            example,
        })
    }

    /// The fields of an example: of an envelope its `data`, otherwise of the object itself.
    pub fn of_example(example: &Value) -> Result<Vec<Self>, FieldError> {
        let data = match example.get("data") {
            Some(data) if example.get("ok").is_some() => data,
            _ => example,
        };
        let Value::Object(map) = data else {
            return Err(FieldError {
                message: String::from("the example is not a JSON object"),
                hint: String::from(
                    "write an answer as the module should give it, such as {\"vendor\": \"Acme\"}",
                ),
            });
        };
        let mut fields = Vec::new();
        for (name, value) in map {
            check_name(name)?;
            if name == "rationale" && !value.is_string() {
                return Err(FieldError {
                    message: String::from("`rationale` is not a string"),
                    hint: String::from("every answer has a rationale, which is a text"),
                });
            }
            fields.push(Self {
                name: name.clone(),
                required: true,
                schema: schema_of(value),
                example: value.clone(),
            });
        }
        check_all(&fields)?;
        Ok(fields)
    }

    /// What the prompt says about the type.
    pub(super) fn describe(&self) -> String {
        let kind = kind_of(&self.schema);
        match self.required {
            true => kind,
            false => format!("{kind}, if known"),
        }
    }
}

/// Rejects a list of fields that no module can have.
pub fn check_all(fields: &[OutputField]) -> Result<(), FieldError> {
    let refuse = |message: String, hint: &str| {
        Err(FieldError {
            message,
            hint: String::from(hint),
        })
    };
    if fields.len() > FIELDS_MAX {
        return refuse(
            format!("more than {FIELDS_MAX} fields"),
            "group them in an object",
        );
    }
    let repeated = fields
        .iter()
        .enumerate()
        .find(|(at, field)| fields.iter().take(*at).any(|one| one.name == field.name));
    if let Some((_, field)) = repeated {
        return refuse(
            format!("the field `{}` is given twice", field.name),
            "give each field once",
        );
    }
    match fields.iter().all(|field| field.name == "rationale") {
        true => refuse(
            String::from("there are no fields"),
            "give at least one besides `rationale`",
        ),
        false => Ok(()),
    }
}

/// Names are part of the prompt, so they must not contain placeholders.
fn check_name(name: &str) -> Result<(), FieldError> {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let problem = if name.is_empty() {
        "is empty"
    } else if name.chars().count() > NAME_CHARS_MAX {
        "is too long"
    } else if !name.chars().all(allowed) {
        "contains other characters than letters, digits, `_` and `-`"
    } else if name == "extensions" {
        "is reserved for observations without a field"
    } else {
        return Ok(());
    };
    Err(FieldError {
        message: format!("the field name `{name}` {problem}"),
        hint: String::from("write NAME:TYPE, such as vendor:string"),
    })
}

/// Whether a text can be quoted in the prompt: it is not blank and contains no placeholder.
fn is_plain(text: &str) -> bool {
    let special = |c: char| c.is_control() || matches!(c, '$' | '@' | '`');
    !text.trim().is_empty() && !text.contains(special)
}

/// The schema of a type, and an example.
fn typed(kind: &str) -> Option<(Value, Value)> {
    if let Some(item) = kind.strip_prefix("list:") {
        let (items, example) = typed(item)?;
        return Some((json!({ "type": "array", "items": items }), json!([example])));
    }
    if kind.contains('|') {
        let values: Vec<&str> = kind.split('|').collect();
        let unique = values
            .iter()
            .enumerate()
            .all(|(at, value)| is_plain(value) && !values.iter().take(at).any(|one| one == value));
        let first = values.first().copied();
        return unique.then(|| (json!({ "type": "string", "enum": values }), json!(first)));
    }
    let example = match kind {
        "string" => json!("example"),
        "number" => json!(1.5),
        "integer" => json!(1),
        "boolean" => json!(true),
        "object" => json!({}),
        "list" => return typed("list:string"),
        _ => return None,
    };
    Some((json!({ "type": kind }), example))
}

/// The narrowest schema of this form that the value matches.
fn schema_of(value: &Value) -> Value {
    match value {
        // The type of the other values is not known.
        Value::Null => json!({}),
        Value::Bool(_) => json!({ "type": "boolean" }),
        Value::Number(number) if number.is_f64() => json!({ "type": "number" }),
        Value::Number(_) => json!({ "type": "integer" }),
        Value::String(_) => json!({ "type": "string" }),
        Value::Array(items) => {
            let schemas = items.iter().map(schema_of);
            match schemas.reduce(|one, other| merged(&one, &other)) {
                Some(items) => json!({ "type": "array", "items": items }),
                None => json!({ "type": "array" }),
            }
        }
        Value::Object(map) => {
            let properties: Map<String, Value> = map
                .iter()
                .map(|(key, value)| (key.clone(), schema_of(value)))
                .collect();
            let required: Vec<&String> = map.keys().collect();
            json!({ "type": "object", "required": required, "properties": properties })
        }
    }
}

/// A schema that everything matches that one of the two matches.
fn merged(one: &Value, other: &Value) -> Value {
    if one == other {
        return one.clone();
    }
    match (one["type"].as_str(), other["type"].as_str()) {
        (Some("integer" | "number"), Some("integer" | "number")) => json!({ "type": "number" }),
        (Some("array"), Some("array")) => match (one.get("items"), other.get("items")) {
            (Some(one), Some(other)) => json!({ "type": "array", "items": merged(one, other) }),
            (Some(items), None) | (None, Some(items)) => json!({ "type": "array", "items": items }),
            (None, None) => json!({ "type": "array" }),
        },
        (Some("object"), Some("object")) => merged_objects(one, other),
        _ => json!({}),
    }
}

fn merged_objects(one: &Value, other: &Value) -> Value {
    let properties = |schema: &Value| schema["properties"].as_object().cloned().unwrap_or_default();
    let mut all = properties(one);
    for (key, schema) in properties(other) {
        let schema = match all.get(&key) {
            Some(known) => merged(known, &schema),
            None => schema,
        };
        all.insert(key, schema);
    }
    let is_required = |schema: &Value, key: &Value| {
        let list = schema["required"].as_array();
        list.is_some_and(|list| list.contains(key))
    };
    let required = one["required"].as_array().into_iter().flatten();
    let required: Vec<&Value> = required.filter(|key| is_required(other, key)).collect();
    json!({ "type": "object", "required": required, "properties": all })
}

/// A schema in words.
fn kind_of(schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values
            .iter()
            .map(|value| format!("`{}`", value.as_str().unwrap_or_default()))
            .collect();
        return format!("one of {}", values.join(", "));
    }
    match schema["type"].as_str() {
        Some("string") => String::from("a text"),
        Some("number") => String::from("a number"),
        Some("integer") => String::from("a whole number"),
        Some("boolean") => String::from("true or false"),
        Some("object") => match schema["properties"].as_object() {
            Some(properties) => {
                let names = properties.keys().filter(|name| is_plain(name));
                let names = names.map(|name| format!("`{name}`"));
                format!("an object with {}", names.collect::<Vec<_>>().join(", "))
            }
            None => String::from("an object"),
        },
        Some("array") => match schema.get("items") {
            Some(items) if items.get("type").is_some() => format!("a list; each item is {}", kind_of(items)),
            _ => String::from("a list"),
        },
        _ => String::from("a value"),
    }
}

#[cfg(test)]
mod tests {
    use jsonschema::draft7::is_valid;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{OutputField, check_all, schema_of};

    #[test]
    fn fields_have_the_schema_of_their_type() {
        for (text, name, required, schema) in [
            ("vendor", "vendor", true, json!({"type": "string"})),
            ("vendor:string", "vendor", true, json!({"type": "string"})),
            ("note:string?", "note", false, json!({"type": "string"})),
            ("total:number", "total", true, json!({"type": "number"})),
            (
                "items:list",
                "items",
                true,
                json!({"type": "array", "items": {"type": "string"}}),
            ),
            (
                "prices:list:number",
                "prices",
                true,
                json!({"type": "array", "items": {"type": "number"}}),
            ),
            (
                "label:a|b",
                "label",
                true,
                json!({"type": "string", "enum": ["a", "b"]}),
            ),
            ("größe:integer", "größe", true, json!({"type": "integer"})),
        ] {
            let field = OutputField::parse(text).unwrap();
            assert_eq!(
                (field.name.as_str(), field.required, &field.schema),
                (name, required, &schema),
                "{text}"
            );
            assert!(is_valid(&field.schema, &field.example), "{text}");
        }
    }

    #[test]
    fn unusable_fields_are_refused() {
        for text in [
            "",
            ":string",
            "a b",
            "${x}",
            "@call",
            "vendor:text",
            "vendor:",
            "label:a|a",
            "label:|a",
            "x:list:",
            "extensions:list",
            "rationale:number",
        ] {
            assert!(OutputField::parse(text).is_err(), "{text}");
        }
        let twice = ["a:string", "a:number"].map(|text| OutputField::parse(text).unwrap());
        assert_eq!(
            check_all(&twice).unwrap_err().message,
            "the field `a` is given twice"
        );
        assert!(check_all(&[OutputField::parse("rationale").unwrap()]).is_err());
        for example in [
            json!([1]),
            json!("text"),
            json!({}),
            json!({"rationale": 1, "a": 1}),
            json!({"$a": 1}),
        ] {
            assert!(OutputField::of_example(&example).is_err(), "{example}");
        }
    }

    #[test]
    fn items_of_a_list_are_merged() {
        let example =
            json!({"items": [{"name": "a", "price": 1}, {"name": "b", "price": 2.5, "sale": true}]});
        let fields = OutputField::of_example(&json!({"ok": true, "data": example})).unwrap();
        let items = json!({
            "type": "object",
            "required": ["name", "price"],
            "properties": {"name": {"type": "string"}, "price": {"type": "number"}, "sale": {"type": "boolean"}}
        });
        assert_eq!(fields[0].schema, json!({"type": "array", "items": items}));
        assert_eq!(
            fields[0].describe(),
            "a list; each item is an object with `name`, `price`, `sale`"
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(".{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_matches_the_schema_inferred_from_it(value in any_json()) {
            let schema = schema_of(&value);
            prop_assert!(is_valid(&schema, &value), "{schema} {value}");
        }
    }
}
