//! Locations of media items in an input, by the input schema. In a module without media inputs, an object
//! with the form of media is data.

use serde_json::{Map, Value, json};

use crate::document::join;
use crate::limits;
use crate::manifest::Modality;
use crate::module::Module;
use crate::schema::{SchemaView, Section};

/// Pointers to every media item of an input, in the order of the input.
pub fn media_locations(module: &Module, input: &Map<String, Value>) -> Vec<String> {
    let takes = &module.manifest.modalities.input;
    if takes.iter().all(|modality| *modality == Modality::Text) {
        return Vec::new();
    }
    let contract = &module.contract;
    let shape = contract
        .schema(Section::Input)
        .map(|schema| SchemaView::new(contract.document(), schema));
    let mut found = Vec::new();
    for (key, value) in input.iter().filter(|(key, _)| !key.starts_with('_')) {
        // Without a schema, every object with the form of a media item is one.
        let inner = shape.map(|shape| shape.property(key));
        look(value, inner, &join("", key), 0, &mut found);
    }
    found
}

/// `shape` is `None` without a schema, and `Some(None)` if the schema does not describe this position.
fn look(
    value: &Value,
    shape: Option<Option<SchemaView<'_>>>,
    at: &str,
    depth: usize,
    found: &mut Vec<String>,
) {
    if depth > limits::NESTING_MAX {
        return;
    }
    let is_place = match shape {
        None => true,
        Some(shape) => shape.is_some_and(SchemaView::is_media),
    };
    match value {
        Value::Object(map) if is_place && has_form(map) => found.push(String::from(at)),
        Value::Object(map) => {
            for (key, value) in map {
                let inner = shape.map(|shape| shape.and_then(|shape| shape.property(key)));
                look(value, inner, &join(at, key), depth + 1, found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                let inner = shape.map(|shape| shape.and_then(SchemaView::items));
                look(value, inner, &join(at, &index.to_string()), depth + 1, found);
            }
        }
        _ => {}
    }
}

/// Whether `type` names a variant of a media input; other fields are not checked.
fn has_form(map: &Map<String, Value>) -> bool {
    matches!(
        map.get("type").and_then(Value::as_str),
        Some("url" | "base64" | "file" | "upload_ref")
    )
}

/// Replaces each media item by its number and media type, so that the prompt text contains neither the bytes
/// nor a URL or a path.
pub fn insert_media(input: &mut Map<String, Value>, places: &[String], media_types: &[String]) {
    let mut whole = Value::Object(std::mem::take(input));
    for (index, (place, media_type)) in places.iter().zip(media_types).enumerate() {
        if let Some(item) = whole.pointer_mut(place) {
            *item = json!({"media": index + 1, "media_type": media_type});
        }
    }
    if let Value::Object(map) = whole {
        *input = map;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{insert_media, media_locations};
    use crate::module::Module;
    use crate::{FileMap, load};

    fn module(modalities: &str, input: &Value) -> Module {
        let manifest = format!("name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\n{modalities}");
        let files: FileMap = [
            ("module.yaml", manifest),
            ("prompt.md", String::from("$MEDIA_INPUTS")),
            ("schema.json", json!({"input": input, "data": {}}).to_string()),
        ]
        .into_iter()
        .collect();
        load(&files).module.unwrap()
    }

    fn places(module: &Module, input: &Value) -> Vec<String> {
        media_locations(module, input.as_object().unwrap())
    }

    const IMAGES: &str = "modalities:\n  input: [text, image]\n";

    #[test]
    fn finds_media_where_schema_declares_it() {
        let item =
            json!({"type": "object", "properties": {"type": {"const": "url"}, "url": {}, "media_type": {}}});
        let module = module(
            IMAGES,
            &json!({"type": "object", "properties": {
                "cover": item,
                "pages": {"type": "array", "items": {"oneOf": [item]}},
                "link": {"type": "object", "properties": {"type": {}, "href": {}}}
            }}),
        );
        let link = json!({"type": "url", "url": "http://a/"});
        let input = json!({"pages": [link, link], "link": link, "cover": link, "_context": link});
        assert_eq!(places(&module, &input), ["/pages/0", "/pages/1", "/cover"]);
    }

    #[test]
    fn text_module_has_no_media() {
        let module = module("", &json!({"type": "object"}));
        assert!(places(&module, &json!({"a": {"type": "url", "url": "http://a/"}})).is_empty());
    }

    #[test]
    fn items_are_replaced_by_number_and_type() {
        let mut input = json!({"a": [{"type": "base64", "data": "AAAA"}], "b": 1});
        let map = input.as_object_mut().unwrap();
        insert_media(map, &[String::from("/a/0")], &[String::from("image/png")]);
        assert_eq!(
            input,
            json!({"a": [{"media": 1, "media_type": "image/png"}], "b": 1})
        );
    }
}
