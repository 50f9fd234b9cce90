//! OpenAI's transcriptions. The request is a multipart form with a file; here its fields are an object with
//! the file as a data URL or a URL, which the transport turns into a form.
//! <https://platform.openai.com/docs/api-reference/audio/createTranscription>

use ir::envelope::{TranscriptionRequest, TranscriptionResponse};
use ir::{Dialect, Error, Ext, Fields, Ledger, Map, Media, MediaKind, Phase};
use serde_json::{Value, json};

use crate::openai_chat::usage;
use crate::{error_body, media_losses};

const OWN: Dialect = Dialect::OpenaiTranscriptions;
const WORDS: usage::UsageFields = usage::UsageFields {
    dialect: OWN,
    input: "input_tokens",
    output: "output_tokens",
};
const GRANULARITIES: &str = "timestamp_granularities";

pub fn decode_request(body: Value) -> Result<TranscriptionRequest, Error> {
    let mut fields = Fields::of(body).ok_or_else(|| Error::invalid_request("the body is not an object"))?;
    let file = fields
        .string("file")
        .ok_or_else(|| Error::invalid_request("`file` is missing"))?;
    let mut audio = Media::from_url(&file).with_kind(MediaKind::Audio);
    audio.hints.filename = fields.string("filename");
    let mut ext = Ext::default();
    // Timestamps are only in the verbose response format.
    let wants_times = fields
        .peek(GRANULARITIES)
        .is_some_and(|list| list.as_array().is_some_and(|list| !list.is_empty()));
    if wants_times {
        if let Some(list) = fields.take(GRANULARITIES) {
            ext.set(OWN, "$granularities", list);
        }
        if let Some(format) = fields.string("response_format") {
            ext.set(OWN, "$response_format", format);
        }
    }
    let request = TranscriptionRequest {
        model: fields.string("model"),
        audio,
        language: fields.string("language"),
        prompt: fields.string("prompt"),
        timestamps: wants_times.then_some(true),
        diarization: None,
        temperature: fields.number("temperature"),
        ext,
        rest: Map::new(),
    };
    let mut request = request;
    request.ext.extend(OWN, fields.rest());
    Ok(request)
}

pub fn encode_request(request: &TranscriptionRequest, ledger: &mut Ledger) -> Result<Value, Error> {
    let media = &request.audio;
    let url = media
        .to_url()
        .ok_or_else(|| media_losses::unresolved(media, "/payload/audio", OWN))?;
    media_losses::book(media, "/payload/audio", OWN, &["hints/filename"], ledger);
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            map.insert(String::from(key), value);
        }
    };
    put("file", json!(url));
    put("filename", json!(media.hints.filename));
    put("model", json!(request.model));
    put("language", json!(request.language));
    put("prompt", json!(request.prompt));
    put("temperature", json!(request.temperature));
    if request.timestamps == Some(true) {
        let list = request.ext.value(OWN, "$granularities").cloned();
        let known = list.is_some();
        put(GRANULARITIES, list.unwrap_or_else(|| json!(["segment"])));
        let format = request.ext.value(OWN, "$response_format").cloned();
        put(
            "response_format",
            format.unwrap_or_else(|| if known { Value::Null } else { json!("verbose_json") }),
        );
    }
    if request.diarization == Some(true) {
        ledger.dropped(
            "/payload/diarization",
            format!("{OWN} selects diarization by model"),
        );
    }
    crate::unknown_fields::book_rest(&request.rest, OWN, ledger);
    request.ext.restore(OWN, &mut map);
    ledger.foreign("/payload", &request.ext, OWN);
    Ok(Value::Object(map))
}

pub fn decode_response(body: Value) -> Result<TranscriptionResponse, Error> {
    if let Some(error) = error_body::from_value(OWN, &body, Phase::BeforeFirstByte, None) {
        return Err(error);
    }
    let bad = |what: &str| Error::invalid_response(Phase::BeforeFirstByte, format!("the answer {what}"));
    let mut fields = Fields::of(body).ok_or_else(|| bad("is not an object"))?;
    let text = fields.string("text").ok_or_else(|| bad("has no text"))?;
    Ok(TranscriptionResponse {
        text,
        language: fields.string("language"),
        duration: fields.number("duration"),
        segments: fields.array("segments"),
        words: fields.array("words"),
        usage: fields
            .object("usage")
            .map(|usage| usage::decode(&Value::Object(usage.rest()), OWN)),
        ext: Ext::of(OWN, fields.rest()),
        rest: Map::new(),
    })
}

pub fn encode_response(response: &TranscriptionResponse, ledger: &mut Ledger) -> Value {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            map.insert(String::from(key), value);
        }
    };
    put("text", json!(response.text));
    put("language", json!(response.language));
    put("duration", json!(response.duration));
    put("segments", json!(response.segments));
    put("words", json!(response.words));
    put(
        "usage",
        response
            .usage
            .as_ref()
            .map_or(Value::Null, |counts| usage::encode(counts, &WORDS)),
    );
    response.ext.restore(OWN, &mut map);
    ledger.foreign("/result/payload", &response.ext, OWN);
    Value::Object(map)
}
