//! OpenAI's speech. The answer is sound, not JSON: [`decode_audio`] and [`encode_audio`] deal in bytes and
//! their type, wherever the bytes lie.
//! <https://platform.openai.com/docs/api-reference/audio/createSpeech>

use ir::envelope::{SpeechRequest, SpeechResponse};
use ir::media::{MediaHandle, StoredRef, mime_of_audio_format};
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
        ledger.dropped("/payload/ssml", format!("{OWN} reads marks aloud"));
    }
    crate::unknown_fields::book_rest(&request.rest, OWN, ledger);
    request.ext.restore(OWN, &mut map);
    ledger.foreign("/payload", &request.ext, OWN);
    Value::Object(map)
}

/// The answer: bytes, and the type that the server names, that they show themselves, or that was asked for.
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

/// The bytes of a sound, or the way to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AudioBytes {
    Here(Vec<u8>),
    Held(MediaHandle),
}

/// The answer towards a client: the bytes and their type. Sound that stands elsewhere has to be fetched
/// first, which is not done here.
pub fn encode_audio(response: &SpeechResponse, ledger: &mut Ledger) -> Result<(AudioBytes, String), Error> {
    let bad = |message: &str| Error::invalid_response(Phase::MidStream, message);
    let sound = match &response.audio.source {
        MediaSource::Inline(text) => {
            let bytes = text.decode();
            AudioBytes::Here(bytes.map_err(|_| bad("the sound is not valid base64"))?)
        }
        MediaSource::Stored(StoredRef::Handle(held)) => AudioBytes::Held(held.clone()),
        _ => {
            let message = "the sound is not here as bytes; it has to be fetched before it can be sent";
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
    use ir::{Ledger, MediaSource, Component};

    use super::{AudioBytes, decode_audio, encode_audio};

    fn inline(bytes: &[u8]) -> MediaSource {
        MediaSource::Inline(Base64::from_bytes(bytes))
    }

    #[test]
    fn sound_comes_out_as_it_went_in() {
        let bytes: Vec<u8> = (0..=255).collect();
        for (content_type, format, mime) in [
            (Some("audio/wav"), None, "audio/wav"),
            (Some("application/json"), Some("wav"), "audio/wav"),
            (None, None, "audio/mpeg"),
        ] {
            let response = decode_audio(inline(&bytes), content_type, format);
            let mut ledger = Ledger::new(Component::Adapter);
            let (sent, named) = encode_audio(&response, &mut ledger).unwrap();
            assert_eq!((sent, named.as_str()), (AudioBytes::Here(bytes.clone()), mime));
            assert_eq!(ledger.losses().count(), 0);
        }
    }

    #[test]
    fn sound_whose_type_nobody_names_shows_it() {
        let response = decode_audio(inline(b"OggS and so on"), Some("application/octet-stream"), None);
        assert_eq!(response.audio.mime.as_deref(), Some("audio/ogg"));
        let response = decode_audio(inline(b"\x89PNG\r\n\x1a\n"), None, Some("wav"));
        assert_eq!(
            response.audio.mime.as_deref(),
            Some("audio/wav"),
            "no picture speaks"
        );
    }

    #[test]
    fn sound_that_is_not_here_is_refused() {
        let mut response = decode_audio(inline(b"RIFF"), Some("audio/wav"), None);
        response.audio.source = MediaSource::Inline(Base64::from_text("not base64!"));
        assert!(encode_audio(&response, &mut Ledger::new(Component::Adapter)).is_err());
        response.audio.source = MediaSource::Remote(String::from("https://example.org/a.wav"));
        assert!(encode_audio(&response, &mut Ledger::new(Component::Adapter)).is_err());
    }
}
