//! The prepared media of a run, with the metadata and warnings for the envelope.

use ::media::{Adaptation, Error, Facts, Limit, Prepared};
use ir::media::{Media, MediaKind};
use module::input::insert_media;
use module::{Code, Module};
use serde_json::{Map, Value, json};

use super::errors::{MediaError, refused};
use super::load::{MediaItem, MediaOrigin};
use crate::limits;
use crate::run::Warning;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PreparedMedia {
    /// JSON pointers of the items in the input.
    places: Vec<String>,
    pub(crate) media: Vec<Media>,
    /// `meta.media_processed`.
    pub(crate) processed: Vec<Value>,
    validated: Vec<Value>,
    pub(crate) warnings: Vec<Warning>,
    images: u64,
    images_max: u64,
    bytes: u64,
}

impl PreparedMedia {
    pub(super) fn new(module: &Module, places: &[String]) -> Result<Self, MediaError> {
        check_limit(Limit::Count, limits::MEDIA_ITEMS_MAX as u64, places.len() as u64)?;
        Ok(Self {
            places: places.to_vec(),
            images_max: module.manifest.modalities.constraints.max_images,
            ..Self::default()
        })
    }

    pub(super) fn push(&mut self, item: &MediaItem, prepared: &Prepared) -> Result<(), MediaError> {
        let index = self.processed.len();
        self.bytes = self.bytes.saturating_add(prepared.output.size_bytes);
        check_limit(Limit::Size, limits::MEDIA_BYTES_MAX, self.bytes)?;
        if prepared.input.format.kind() == MediaKind::Image {
            self.images += 1;
            check_limit(Limit::Count, self.images_max, self.images)?;
        }
        let source = match &item.from {
            MediaOrigin::Url(_) => "url",
            MediaOrigin::Inline(_) => "base64",
            MediaOrigin::File(_) | MediaOrigin::Handle(_) => "file",
        };
        let inline = matches!(item.from, MediaOrigin::Inline(_));
        if inline && prepared.input.size_bytes > limits::INLINE_HINT_BYTES {
            let mut warning = Warning::new(Code::W1011, "large media was sent inline");
            warning.extra.insert(String::from("index"), index.into());
            warning
                .extra
                .insert(String::from("size_bytes"), prepared.input.size_bytes.into());
            self.warnings.push(warning);
        }
        for adaptation in &prepared.adaptations {
            self.warnings.push(adapted(index, adaptation));
        }
        self.validated.push(validated(index, &prepared.input));
        let adaptations: Vec<Value> = prepared.adaptations.iter().map(adaptation_json).collect();
        self.processed.push(json!({
            "index": index,
            "source": source,
            "media_type": prepared.output.format.mime(),
            "size_bytes": prepared.output.size_bytes,
            "sha256": prepared.output.sha256,
            "removed": prepared.removed,
            "adaptations": adaptations,
        }));
        Ok(())
    }

    /// Replaces each item in the input by a placeholder for the prompt.
    pub(crate) fn insert_into(&self, input: &mut Map<String, Value>) {
        let types: Vec<String> = self.media.iter().filter_map(|media| media.mime.clone()).collect();
        insert_media(input, &self.places, &types);
    }

    /// `meta.media_validation`.
    pub(crate) fn validation(&self) -> Value {
        json!({"input_count": self.validated.len(), "validated": self.validated})
    }
}

fn check_limit(limit: Limit, allowed: u64, actual: u64) -> Result<(), MediaError> {
    if actual <= allowed {
        return Ok(());
    }
    Err(refused(&Error::TooLarge {
        limit,
        allowed,
        actual,
    }))
}

/// Contains only known values.
fn validated(index: usize, facts: &Facts) -> Value {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(String::from(key), value);
    put("index", index.into());
    put("media_type", facts.format.mime().into());
    put("size_bytes", facts.size_bytes.into());
    put("sha256", facts.sha256.clone().into());
    if let Some((width, height)) = facts.width.zip(facts.height) {
        put("dimensions", json!({"width": width, "height": height}));
    }
    let numbers = [
        ("frames", facts.frames.filter(|frames| *frames > 1)),
        ("duration_ms", facts.duration_ms),
        ("sample_rate", facts.sample_rate_hz),
        ("channels", facts.channels),
        ("pages", facts.pages),
    ];
    for (key, number) in numbers {
        if let Some(number) = number {
            put(key, number.into());
        }
    }
    put("valid", true.into());
    Value::Object(map)
}

fn adaptation_json(adaptation: &Adaptation) -> Value {
    json!({"action": adaptation.action.as_str(), "from": adaptation.from, "to": adaptation.to})
}

fn adapted(index: usize, adaptation: &Adaptation) -> Warning {
    let mut warning = Warning::new(Code::W1015, "the image was scaled or converted to fit the limits");
    warning.extra.insert(String::from("index"), index.into());
    if let Value::Object(fields) = adaptation_json(adaptation) {
        warning.extra.extend(fields);
    }
    warning
}
