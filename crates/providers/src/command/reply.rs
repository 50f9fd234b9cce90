//! What the program gave, as an answer to what was asked. A program that says nothing where something was
//! asked for, or something of another shape, has failed, whatever its status says.

use ir::envelope::{
    Embedding, EmbeddingVector, EmbeddingsResponse, ImageResponse, SpeechResponse, TranscriptionResponse,
};
use ir::media::{Base64, MimeTrust, mime_of_audio_format, sniff};
use ir::{Error, Ext, Map, Media, MediaSource, Operation, Phase, Request, ResponsePayload};
use serde_json::{Number, Value};

use super::options::{CommandOptions, ReplyForm};
use super::value::Values;

pub(super) fn reply(
    bytes: &[u8],
    request: &Request,
    values: &Values,
    options: &CommandOptions,
) -> Result<ResponsePayload, Error> {
    let bad = |what: String| {
        let message = format!("back-end {} {what}", options.name);
        Error::invalid_response(Phase::MidStream, message)
    };
    match options.operation {
        Operation::TextToSpeech => {
            let audio = media(bytes, values.format.as_deref()).map_err(bad)?;
            Ok(ResponsePayload::Speech(Box::new(SpeechResponse {
                audio,
                ext: Ext::default(),
                rest: Map::new(),
            })))
        }
        Operation::ImageGeneration => {
            let image = media(bytes, None).map_err(bad)?;
            Ok(ResponsePayload::Image(ImageResponse {
                images: vec![image],
                created: None,
                usage: None,
                ext: Ext::default(),
                rest: Map::new(),
            }))
        }
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
        Operation::ChatCompletions | Operation::RealtimeVoice => {
            let what = format!("gives no {} in one piece", options.operation.as_str());
            Err(bad(what))
        }
    }
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
        ReplyForm::Text => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::from(text.trim())),
            Err(_) => Err(String::from("gave a text that is not UTF-8")),
        },
        ReplyForm::Json { pointer } => {
            let whole: Value =
                serde_json::from_slice(bytes).map_err(|error| format!("gave no JSON: {error}"))?;
            let found = whole.pointer(pointer).cloned();
            found.ok_or_else(|| format!("gave JSON without anything at `{pointer}`"))
        }
        ReplyForm::Bytes => Err(String::from("is set up to give bytes, where words are asked for")),
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
fn media(bytes: &[u8], format: Option<&str>) -> Result<Media, String> {
    if bytes.is_empty() {
        return Err(String::from("gave nothing"));
    }
    let seen = sniff(bytes).map(String::from);
    let trust = match seen {
        Some(_) => MimeTrust::Verified,
        None => MimeTrust::Declared,
    };
    let said = || format.and_then(|format| mime_of_audio_format(format, None));
    let mime = seen.or_else(said).ok_or("gave bytes of an unknown type")?;
    let mut media = Media::new(MediaSource::Inline(Base64::from_bytes(bytes)), Some(mime));
    media.mime_trust = trust;
    media.facts.size_bytes = u64::try_from(bytes.len()).ok();
    Ok(media)
}
