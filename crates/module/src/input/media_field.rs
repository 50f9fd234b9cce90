//! Selects the input field for a media item, by the input schema and the field names.

use serde_json::{Map, Value};

use crate::manifest::Modality;
use crate::module::Module;
use crate::schema::{SchemaView, Section};

/// A top-level field of the input for media.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaField {
    pub name: String,
    /// The field is a list of items.
    pub many: bool,
}

/// Words that identify fields for a kind of media by name.
fn words(kind: Modality) -> &'static [&'static str] {
    match kind {
        Modality::Text => &[],
        Modality::Image => &["image", "picture", "photo", "screenshot", "img"],
        Modality::Audio => &["audio", "sound", "speech", "voice", "recording"],
        Modality::Video => &["video", "clip", "film", "movie"],
        Modality::Document => &["document", "doc", "pdf", "file", "paper"],
    }
}

fn word(kind: Modality) -> &'static str {
    match kind {
        Modality::Text => "text",
        Modality::Image => "image",
        Modality::Audio => "audio",
        Modality::Video => "video",
        Modality::Document => "document",
    }
}

/// The field for this kind of media, or why there is none.
pub fn media_field(module: &Module, kind: Modality) -> Result<MediaField, String> {
    let takes = &module.manifest.modalities.input;
    let (name, wanted) = (module.name(), word(kind));
    if !takes.contains(&kind) {
        let takes: Vec<_> = takes.iter().copied().map(word).collect();
        let takes = if takes.is_empty() {
            String::from("text")
        } else {
            takes.join(", ")
        };
        return Err(format!("`{name}` accepts no {wanted}; it accepts {takes}"));
    }
    let fields = fields(module);
    let called = |field: &&MediaField| {
        let name = field.name.to_lowercase();
        words(kind).iter().any(|word| name.contains(word))
    };
    let mut named = fields.iter().filter(called);
    if let (Some(field), None) = (named.next(), named.next()) {
        return Ok(field.clone());
    }
    match fields.as_slice() {
        [] => Err(format!("the input schema of `{name}` has no field for media")),
        [only] => Ok(only.clone()),
        several => {
            let names: Vec<_> = several.iter().map(|field| field.name.as_str()).collect();
            Err(format!(
                "the input schema of `{name}` does not define which of {} is for {wanted}",
                names.join(", ")
            ))
        }
    }
}

fn fields(module: &Module) -> Vec<MediaField> {
    let contract = &module.contract;
    let Some(schema) = contract.schema(Section::Input) else {
        return Vec::new();
    };
    let properties = SchemaView::new(contract.document(), schema).properties();
    let fields = properties.into_iter().filter_map(|(name, shape)| {
        let many = shape.items().is_some_and(SchemaView::is_media);
        (many || shape.is_media()).then(|| MediaField {
            name: String::from(name),
            many,
        })
    });
    fields.collect()
}

/// Puts an item into its field. A field for one item refuses a second.
pub fn put_media(input: &mut Map<String, Value>, field: &MediaField, item: Value) -> Result<(), String> {
    let there = input.entry(field.name.clone()).or_insert(Value::Null);
    match there {
        Value::Null if field.many => *there = Value::Array(vec![item]),
        Value::Null => *there = item,
        Value::Array(items) if field.many => items.push(item),
        _ => return Err(format!("`{}` accepts one item and already has one", field.name)),
    }
    Ok(())
}
