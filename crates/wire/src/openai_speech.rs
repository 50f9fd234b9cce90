//! OpenAI's speech. The response is audio, not JSON: [`decode_audio`] and [`encode_audio`] convert bytes or a
//! media handle and a media type.
//! <https://platform.openai.com/docs/api-reference/audio/createSpeech>

use ir::envelope::{SpeechRequest, SpeechResponse};
use ir::media::{MediaHandle, mime_of_audio_format};
use ir::{Dialect, Error, Ext, Fields, Ledger, Map, Media, MediaKind, MediaSource, Phase};
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
        ledger.dropped("/payload/ssml", format!("SSML is not supported by {OWN}"));
    }
    crate::unknown_fields::book_rest(&request.rest, OWN, ledger);
    request.ext.restore(OWN, &mut map);
    ledger.foreign("/payload", &request.ext, OWN);
    Value::Object(map)
}

/// The response: the bytes, and the type from the header, from the bytes, or of the requested format.
pub fn decode_audio(source: MediaSource, content_type: Option<&str>, format: Option<&str>) -> SpeechResponse {
    let is_sound = |mime: &str| mime.starts_with("audio/");
    let named = content_type.filter(|mime| is_sound(mime)).map(String::from);
    let mut audio = Media::new(source, named).with_kind(MediaKind::Audio);
    let seen = audio.mime_or_sniffed().filter(|mime| is_sound(mime));
    audio.mime = seen.or_else(|| mime_of_audio_format(format.unwrap_or("mp3"), None));
    SpeechResponse {
        audio,
        ext: Ext::default(),
        rest: Map::new(),
    }
}

/// The bytes of the audio, or a handle to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AudioBytes {
    Inline(Vec<u8>),
    Handle(MediaHandle),
}

/// The response for a client: bytes and media type. Audio that is only referenced has to be fetched by the
/// caller first.
pub fn encode_audio(response: &SpeechResponse, ledger: &mut Ledger) -> Result<(AudioBytes, String), Error> {
    let bad = |message: &str| Error::invalid_response(Phase::MidStream, message);
    let sound = match &response.audio.source {
        MediaSource::Inline(text) => {
            let bytes = text.decode();
            AudioBytes::Inline(bytes.map_err(|_| bad("the audio is not valid base64"))?)
        }
        MediaSource::Handle(held) => AudioBytes::Handle(held.clone()),
        _ => {
            let message = "the audio is not inline; it has to be fetched before it can be sent";
            return Err(bad(message));
        }
    };
    crate::unknown_fields::book_rest(&response.rest, OWN, ledger);
    ledger.foreign("/payload", &response.ext, OWN);
    let mime = response.audio.mime.clone();
    Ok((
        sound,
        mime.unwrap_or_else(|| String::from("application/octet-stream")),
    ))
}

#[cfg(test)]
mod tests {
    use ir::media::Base64;
    use ir::{Component, Ledger, MediaSource};

    use super::{AudioBytes, decode_audio, encode_audio};

    fn inline(bytes: &[u8]) -> MediaSource {
        MediaSource::Inline(Base64::from_bytes(bytes))
    }

    #[test]
    fn audio_roundtrips() {
        let bytes: Vec<u8> = (0..=255).collect();
        for (content_type, format, mime) in [
            (Some("audio/wav"), None, "audio/wav"),
            (Some("application/json"), Some("wav"), "audio/wav"),
            (None, None, "audio/mpeg"),
        ] {
            let response = decode_audio(inline(&bytes), content_type, format);
            let mut ledger = Ledger::new(Component::Adapter);
            let (sent, named) = encode_audio(&response, &mut ledger).unwrap();
            assert_eq!((sent, named.as_str()), (AudioBytes::Inline(bytes.clone()), mime));
            assert_eq!(ledger.losses().count(), 0);
        }
    }

    #[test]
    fn detects_audio_type_from_bytes() {
        let response = decode_audio(inline(b"OggS and so on"), Some("application/octet-stream"), None);
        assert_eq!(response.audio.mime.as_deref(), Some("audio/ogg"));
        let response = decode_audio(inline(b"\x89PNG\r\n\x1a\n"), None, Some("wav"));
        assert_eq!(
            response.audio.mime.as_deref(),
            Some("audio/wav"),
            "image bytes are not audio"
        );
    }

    #[test]
    fn rejects_audio_that_is_not_inline() {
        let mut response = decode_audio(inline(b"RIFF"), Some("audio/wav"), None);
        response.audio.source = MediaSource::Inline(Base64::from_text("not base64!"));
        assert!(encode_audio(&response, &mut Ledger::new(Component::Adapter)).is_err());
        response.audio.source = MediaSource::Remote(String::from("https://example.org/a.wav"));
        assert!(encode_audio(&response, &mut Ledger::new(Component::Adapter)).is_err());
    }
}
