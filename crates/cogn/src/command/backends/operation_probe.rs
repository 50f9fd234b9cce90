//! Tests of the operations other than chat, each with the smallest request that shows whether it is
//! supported. Image generation is not tested: it is too expensive for a check.

use std::sync::Arc;
use std::time::Duration;

use engine::port::Upstream;
use ir::media::Base64;
use ir::{Error, ErrorKind, Operation, Payload, Phase, Request};
use serde_json::{Value, json};
use tokio::time::timeout;

/// Whether an operation works; `None` if it was not tested.
pub(super) async fn works(
    upstream: &Arc<dyn Upstream>,
    operation: Operation,
    patience: Duration,
) -> Result<Option<bool>, Error> {
    let Some(payload) = question(operation) else {
        return Ok(None);
    };
    let payload = Payload::from_json(operation, payload);
    let payload = payload.map_err(|error| Error::invalid_request(error.to_string()))?;
    let asked = upstream.call(Arc::new(Request::new("probe", payload)));
    match timeout(patience, asked).await {
        Ok(answered) => answered.map(|_| Some(true)),
        Err(_) => {
            let message = format!("no response within {} ms", patience.as_millis());
            Err(Error::new(ErrorKind::Timeout, Phase::BeforeFirstByte, message))
        }
    }
}

fn question(operation: Operation) -> Option<Value> {
    match operation {
        Operation::Embeddings => Some(json!({"input": "Hello."})),
        Operation::TextToSpeech => Some(json!({"input": "Hello."})),
        Operation::SpeechToText => {
            let data = Base64::from_bytes(&silence());
            let audio = json!({"kind": "inline_base64", "mime": "audio/wav", "data": data.as_str()});
            Some(json!({"audio": audio}))
        }
        Operation::ChatCompletions | Operation::ImageGeneration | Operation::RealtimeVoice => None,
    }
}

/// Half a second of silence as a WAV file.
fn silence() -> Vec<u8> {
    const RATE: u32 = 16_000;
    const BYTES: u32 = RATE;
    let mut file = Vec::with_capacity(BYTES as usize + 44);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(36 + BYTES).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend_from_slice(&RATE.to_le_bytes());
    file.extend_from_slice(&(2 * RATE).to_le_bytes());
    file.extend_from_slice(b"\x02\0\x10\0data");
    file.extend_from_slice(&BYTES.to_le_bytes());
    file.resize(file.len() + BYTES as usize, 0);
    file
}
