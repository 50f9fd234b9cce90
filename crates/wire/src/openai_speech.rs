//! OpenAI's speech. The answer is sound, not JSON: [`decode_audio`] takes the bytes and their type.
//! <https://platform.openai.com/docs/api-reference/audio/createSpeech>

use ir::envelope::{SpeechRequest, SpeechResponse};
use ir::media::{Base64, mime_of_audio_format};
use ir::{Dialect, Error, Ext, Fields, Ledger, Map, Media, MediaKind, MediaSource};
use serde_json::{Value, json};

const OWN: Dialect = Dialect::OpenaiSpeech;

pub fn decode_request(body: Value) -> Result<SpeechRequest, Error> {
    let mut fields = Fields::of(body).ok_or_else(|| Error::invalid_request("the body is not an object"))?;
    let input = fields
        .string("input")
        .ok_or_else(|| Error::invalid_request("`input` is missing"))?;
    Ok(SpeechRequest {
        model: fields.string("model"),
        input,
        voice: fields.string("voice"),
        format: fields.string("response_format"),
        speed: fields.number("speed"),
        ssml: None,
        ext: Ext::of(OWN, fields.rest()),
        rest: Map::new(),
    })
}

pub fn encode_request(request: &SpeechRequest, ledger: &mut Ledger) -> Value {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            map.insert(String::from(key), value);
        }
    };
    put("model", json!(request.model));
    put("input", json!(request.input));
    put("voice", json!(request.voice));
    put("response_format", json!(request.format));
    put("speed", json!(request.speed));
    if request.ssml == Some(true) {
        ledger.dropped("/payload/ssml", format!("{OWN} reads marks aloud"));
    }
    crate::extras::book_rest(&request.rest, OWN, ledger);
    request.ext.restore(OWN, &mut map);
    ledger.foreign("/payload", &request.ext, OWN);
    Value::Object(map)
}

/// The answer: bytes, and the type that the server names or the format that was asked for.
pub fn decode_audio(bytes: &[u8], content_type: Option<&str>, format: Option<&str>) -> SpeechResponse {
    let named = content_type
        .filter(|mime| mime.starts_with("audio/"))
        .map(String::from);
    let mime = named.or_else(|| mime_of_audio_format(format.unwrap_or("mp3"), None));
    let audio = Media::new(MediaSource::Inline(Base64::from_bytes(bytes)), mime).with_kind(MediaKind::Audio);
    SpeechResponse {
        audio,
        ext: Ext::default(),
        rest: Map::new(),
    }
}
