//! Short requests that show which features a back-end supports. None succeeds by chance: the schema requires
//! a word that no model would generate without it.

use std::sync::Arc;
use std::time::Duration;

use engine::port::Upstream;
use futures::StreamExt;
use ir::event::Delta;
use ir::fold::Fold;
use ir::{
    ChatRequest, Error, ErrorKind, Event, Generation, Message, PartBody, Phase, Request, ResponseFormat,
    Role, ToolChoice,
};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

/// A word that occurs only in the schema.
const WORD: &str = "quillfeather";
const TOKENS_MAX: u64 = 48;

/// An answer and its timing.
#[derive(Clone, Debug)]
pub(super) struct ProbeAnswer {
    pub(super) first_token_ms: Option<u64>,
    /// Number of text deltas.
    pub(super) pieces: usize,
    text: String,
    calls_tool: bool,
}

/// The streamed answer to a plain prompt.
pub(super) async fn speak(upstream: &Arc<dyn Upstream>, patience: Duration) -> Result<ProbeAnswer, Error> {
    ask(
        upstream,
        question("Count from one to twelve, in words."),
        patience,
    )
    .await
}

/// Whether an answer follows a JSON schema.
pub(super) async fn keeps_schema(upstream: &Arc<dyn Upstream>, patience: Duration) -> Result<bool, Error> {
    let mut chat = question("Say hello.");
    chat.response_format = Some(ResponseFormat::JsonSchema {
        name: Some(String::from("probe")),
        description: None,
        schema: json!({
            "type": "object",
            "properties": {"word": {"type": "string", "enum": [WORD]}},
            "required": ["word"],
            "additionalProperties": false,
        })
        .into(),
        strict: Some(true),
    });
    let seen = ask(upstream, chat, patience).await?;
    let value: Value = serde_json::from_str(seen.text.trim()).unwrap_or_default();
    Ok(value == json!({ "word": WORD }))
}

/// Whether a tool is called if the request requires it.
pub(super) async fn calls_tools(upstream: &Arc<dyn Upstream>, patience: Duration) -> Result<bool, Error> {
    let mut chat = question("What is the weather in Paris? Use the tool.");
    let tool = json!([{
        "name": "weather",
        "description": "Tells the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    }]);
    chat.tools = serde_json::from_value(tool).unwrap_or_default();
    chat.tool_choice = Some(ToolChoice::Required);
    Ok(ask(upstream, chat, patience).await?.calls_tool)
}

fn question(text: &str) -> ChatRequest {
    ChatRequest {
        messages: vec![Message::text(Role::User, text)],
        generation: Generation {
            stream: Some(true),
            max_tokens: Some(TOKENS_MAX),
            ..Generation::default()
        },
        ..ChatRequest::default()
    }
}

/// Sends the request, and once more if the connection broke: servers close idle connections, and a check has
/// no retry loop.
async fn ask(
    upstream: &Arc<dyn Upstream>,
    chat: ChatRequest,
    patience: Duration,
) -> Result<ProbeAnswer, Error> {
    match ask_once(upstream, chat.clone(), patience).await {
        Err(error) if error.kind == ErrorKind::Network && error.phase != Phase::BeforeSend => {
            ask_once(upstream, chat, patience).await
        }
        answer => answer,
    }
}

async fn ask_once(
    upstream: &Arc<dyn Upstream>,
    chat: ChatRequest,
    patience: Duration,
) -> Result<ProbeAnswer, Error> {
    let started = Instant::now();
    let mut events = upstream.stream(Arc::new(Request::chat("probe", chat)));
    let (mut fold, mut pieces, mut first) = (Fold::new(), 0, None);
    let reading = async {
        while let Some(event) = events.next().await {
            let is_text = matches!(
                &event,
                Event::BlockDelta {
                    delta: Delta::Text { .. },
                    ..
                }
            );
            if is_text {
                pieces += 1;
                first = first.or_else(|| u64::try_from(started.elapsed().as_millis()).ok());
            }
            fold.push(event);
        }
    };
    if timeout(patience, reading).await.is_err() {
        let message = format!("no complete response within {} ms", patience.as_millis());
        return Err(Error::new(ErrorKind::Timeout, Phase::MidStream, message));
    }
    let response = fold.finish()?;
    let mut parts = response.parts.iter();
    let calls_tool = parts.any(|part| matches!(part.body, PartBody::ToolCall(_)));
    Ok(ProbeAnswer {
        first_token_ms: first,
        pieces,
        text: response.text(),
        calls_tool,
    })
}
