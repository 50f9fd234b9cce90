//! What the program gave, as an answer to what was asked. A program that says nothing where something was
//! asked for, or something of another shape, has failed, whatever its status says. Pictures and sound lie in
//! the depot already when they are looked at here.

use engine::Keeping;
use ir::envelope::{
    Embedding, EmbeddingVector, EmbeddingsResponse, ImageResponse, SpeechResponse, TranscriptionResponse,
};
use ir::media::{MimeTrust, mime_of_audio_format};
use ir::{Error, Ext, Map, Media, Operation, Phase, Request, ResponsePayload};
use serde_json::{Number, Value};

use super::options::{CommandOptions, OutputFormat};
use super::template_values::TemplateValues;
use crate::spill_error::unkept;

/// Whether what is given for an operation is pictures or sound.
pub(super) fn is_media(operation: Operation) -> bool {
    matches!(operation, Operation::TextToSpeech | Operation::ImageGeneration)
}

pub(super) fn media_reply(
    keeping: Keeping,
    values: &TemplateValues,
    options: &CommandOptions,
) -> Result<ResponsePayload, Error> {
    if options.operation == Operation::TextToSpeech {
        let audio = media(keeping, values.format.as_deref(), options)?;
        return Ok(ResponsePayload::Speech(Box::new(SpeechResponse {
            audio,
            ext: Ext::default(),
            rest: Map::new(),
        })));
    }
    Ok(ResponsePayload::Image(ImageResponse {
        images: vec![media(keeping, None, options)?],
        created: None,
        usage: None,
        ext: Ext::default(),
        rest: Map::new(),
    }))
}

pub(super) fn reply(
    bytes: &[u8],
    request: &Request,
    values: &TemplateValues,
    options: &CommandOptions,
) -> Result<ResponsePayload, Error> {
    let bad = |what: String| bad(options, &what);
    match options.operation {
        Operation::SpeechToText => transcription(value(bytes, options).map_err(bad)?)
            .map(ResponsePayload::Transcription)
            .map_err(bad),
        Operation::Embeddings => {
            let value = value(bytes, options).map_err(bad)?;
            let asked = match &request.payload {
                ir::Payload::Embeddings(asked) => asked.input.len(),
                _ => 0,
            };
            let embeddings = vectors(&value, asked).map_err(bad)?;
            Ok(ResponsePayload::Embeddings(EmbeddingsResponse {
                model: values.model.clone(),
                embeddings,
                usage: None,
                ext: Ext::default(),
                rest: Map::new(),
            }))
        }
        operation => Err(bad(format!("gives no {} in words", operation.as_str()))),
    }
}

fn bad(options: &CommandOptions, what: &str) -> Error {
    let message = format!("back-end {} {what}", options.name);
    Error::invalid_response(Phase::MidStream, message)
}

/// The text of an answer that is one.
pub(super) fn text(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(String::from("gave something that is no text")),
    }
}

/// The output as the configured form reads it.
pub(super) fn value(bytes: &[u8], options: &CommandOptions) -> Result<Value, String> {
    match &options.reply {
        OutputFormat::Text => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::from(text.trim())),
            Err(_) => Err(String::from("gave a text that is not UTF-8")),
        },
        OutputFormat::Json { pointer } => {
            let whole: Value =
                serde_json::from_slice(bytes).map_err(|error| format!("gave no JSON: {error}"))?;
            let found = whole.pointer(pointer).cloned();
            found.ok_or_else(|| format!("gave JSON without anything at `{pointer}`"))
        }
        OutputFormat::Bytes => Err(String::from("is set up to give bytes, where words are asked for")),
    }
}

/// Text alone, or an object with the text and what else is known about it.
fn transcription(value: Value) -> Result<TranscriptionResponse, String> {
    let whole = match value {
        Value::String(text) => serde_json::json!({"text": text}),
        other => other,
    };
    serde_json::from_value(whole).map_err(|error| format!("gave no transcription: {error}"))
}

/// A vector for each text; a single text may be answered with the bare vector.
fn vectors(value: &Value, asked: usize) -> Result<Vec<Embedding>, String> {
    let list = value.as_array().ok_or("gave no list of vectors")?;
    let rows: Vec<&Value> = match list.first() {
        Some(Value::Number(_)) if asked == 1 => vec![value],
        _ => list.iter().collect(),
    };
    if rows.len() != asked {
        return Err(format!("gave {} vectors for {asked} texts", rows.len()));
    }
    let mut width = None;
    let mut embeddings = Vec::with_capacity(rows.len());
    for (index, row) in (0..).zip(rows) {
        let numbers: Vec<Number> = row
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|number| number.as_number().cloned())
            .collect();
        let whole = row.as_array().is_some_and(|row| row.len() == numbers.len());
        if !whole || numbers.is_empty() || *width.get_or_insert(numbers.len()) != numbers.len() {
            return Err(String::from(
                "gave vectors that are not all lists of equally many numbers",
            ));
        }
        embeddings.push(Embedding {
            index,
            vector: EmbeddingVector::Numbers(numbers),
            ext: Ext::default(),
            rest: Map::new(),
        });
    }
    Ok(embeddings)
}

/// Bytes with the type that they give away themselves, else the one that was asked for.
fn media(keeping: Keeping, format: Option<&str>, options: &CommandOptions) -> Result<Media, Error> {
    let size_bytes = keeping.size_bytes();
    if size_bytes == 0 {
        return Err(bad(options, "gave nothing"));
    }
    let source = keeping.finish().map_err(|error| unkept(&error))?;
    let seen = Media::new(source.clone(), None).mime_or_sniffed();
    let trust = match seen {
        Some(_) => MimeTrust::Verified,
        None => MimeTrust::Declared,
    };
    let said = || format.and_then(|format| mime_of_audio_format(format, None));
    let mime = seen.or_else(said);
    let mime = mime.ok_or_else(|| bad(options, "gave bytes of an unknown type"))?;
    let mut media = Media::new(source, Some(mime));
    media.mime_trust = trust;
    media.facts.size_bytes = Some(size_bytes);
    Ok(media)
}
