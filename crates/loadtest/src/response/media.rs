//! Unary operations: a vector, an image, a transcription and audio.

use super::{ASKED, content};
use crate::behaviour::Behaviour;

/// An image of one pixel.
pub(super) const IMAGE: &str = r#"{"created":1700000000,"output_format":"png","data":[{"b64_json":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="}],"usage":{"input_tokens":8,"output_tokens":1,"total_tokens":9}}"#;

/// Four samples of silence, as a WAV file.
pub(super) const SILENCE: &[u8] = b"RIFF\x2c\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00";

pub(super) fn embeddings(model: &str) -> String {
    format!(
        r#"{{"object":"list","model":"{model}","data":[{{"object":"embedding","index":0,"embedding":[0.25,-0.5,0.125]}}],"usage":{{"prompt_tokens":{ASKED},"total_tokens":{ASKED}}}}}"#
    )
}

pub(super) fn transcription(behaviour: Behaviour) -> String {
    let text = content(behaviour);
    format!(r#"{{"text":"{text}","usage":{{"type":"duration","seconds":1}}}}"#)
}
