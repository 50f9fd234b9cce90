//! Decodes the program's output as a response. Missing output, or output of another structure, is a failure,
//! whatever the exit status. Images and audio have been written to the spill store before they are inspected
//! here.

use ir::envelope::{
    Embedding, EmbeddingVector, EmbeddingsResponse, ImageResponse, SpeechResponse, TranscriptionResponse,
};
use ir::media::{MimeTrust, mime_of_audio_format};
use ir::{Error, Ext, Map, Media, Operation, Phase, Request, ResponsePayload};
use serde_json::{Number, Value};
use spill::SpillWriter;

use super::options::{CommandOptions, OutputFormat};
use super::template_values::TemplateValues;
use crate::spill_error::unkept;

/// Whether the operation returns images or audio.
pub(super) fn is_media(operation: Operation) -> bool {
    matches!(operation, Operation::TextToSpeech | Operation::ImageGeneration)
}

pub(super) fn media_reply(
    written: SpillWriter,
    values: &TemplateValues,
    options: &CommandOptions,
) -> Result<ResponsePayload, Error> {
    if options.operation == Operation::TextToSpeech {
        let audio = media(written, values.format.as_deref(), options)?;
        return Ok(ResponsePayload::Speech(Box::new(SpeechResponse {
            audio,
            ext: Ext::default(),
            rest: Map::new(),
        })));
    }
    Ok(ResponsePayload::Image(ImageResponse {
        images: vec![media(written, None, options)?],
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
        operation => Err(bad(format!("does not return {} as text", operation.as_str()))),
    }
}

fn bad(options: &CommandOptions, what: &str) -> Error {
    let message = format!("back-end {} {what}", options.name);
    Error::invalid_response(Phase::MidStream, message)
}

/// The value as text, if it is a string.
pub(super) fn text(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(String::from("returned something other than text")),
    }
}

/// The output decoded in the configured format.
pub(super) fn value(bytes: &[u8], options: &CommandOptions) -> Result<Value, String> {
    match &options.reply {
        OutputFormat::Text => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::from(text.trim())),
            Err(_) => Err(String::from("returned text that is not UTF-8")),
        },
        OutputFormat::Json { pointer } => {
            let whole: Value =
                serde_json::from_slice(bytes).map_err(|error| format!("returned invalid JSON: {error}"))?;
            let found = whole.pointer(pointer).cloned();
            found.ok_or_else(|| format!("returned JSON without a value at `{pointer}`"))
        }
        OutputFormat::Bytes => Err(String::from(
            "is configured to return bytes, but text is required",
        )),
    }
}

/// Text only, or an object with the text and further fields.
fn transcription(value: Value) -> Result<TranscriptionResponse, String> {
    let whole = match value {
        Value::String(text) => serde_json::json!({"text": text}),
        other => other,
    };
    serde_json::from_value(whole).map_err(|error| format!("returned an invalid transcription: {error}"))
}

/// One vector per text; for a single text the bare vector is accepted.
fn vectors(value: &Value, asked: usize) -> Result<Vec<Embedding>, String> {
    let list = value.as_array().ok_or("returned no list of vectors")?;
    let rows: Vec<&Value> = match list.first() {
        Some(Value::Number(_)) if asked == 1 => vec![value],
        _ => list.iter().collect(),
    };
    if rows.len() != asked {
        return Err(format!("returned {} vectors for {asked} texts", rows.len()));
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
                "returned vectors that are not lists of numbers of equal length",
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

/// Bytes with the media type detected from them, else the type of the requested format.
fn media(written: SpillWriter, format: Option<&str>, options: &CommandOptions) -> Result<Media, Error> {
    let size_bytes = written.size_bytes();
    if size_bytes == 0 {
        return Err(bad(options, "returned no output"));
    }
    let source = written.finish().map_err(|error| unkept(&error))?;
    let seen = Media::new(source.clone(), None).mime_or_sniffed();
    let trust = match seen {
        Some(_) => MimeTrust::Verified,
        None => MimeTrust::Declared,
    };
    let said = || format.and_then(|format| mime_of_audio_format(format, None));
    let mime = seen.or_else(said);
    let mime = mime.ok_or_else(|| bad(options, "returned bytes of an unknown type"))?;
    let mut media = Media::new(source, Some(mime));
    media.mime_trust = trust;
    media.facts.size_bytes = Some(size_bytes);
    Ok(media)
}
