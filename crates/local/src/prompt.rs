//! From the messages of a request to tokens, by the chat template of the file. Message texts are tokenised
//! separately from the template, as plain text: a `<|im_end|>` in a document does not end a message.

use ir::chat::PartBody;
use ir::{ChatRequest, Error, ErrorKind, Phase, Role};
use llama_cpp_2::model::{LlamaChatMessage, LlamaChatTemplate};
use llama_cpp_2::token::LlamaToken;

use crate::limits;
use crate::model::{Tokenizer, plain_template};

#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) tokens: Vec<LlamaToken>,
    /// Why the file's own template was not used.
    pub(crate) notice: Option<&'static str>,
}

pub(crate) fn render(tokenizer: &Tokenizer, chat: &ChatRequest) -> Result<Prompt, Error> {
    let texts = texts(chat)?;
    let (frame, notice) = match frame(tokenizer, &tokenizer.template, &texts) {
        Some(frame) if tokenizer.template_is_ours => {
            (frame, Some("the file has no chat template; ChatML is used"))
        }
        Some(frame) => (frame, None),
        None => {
            let frame = frame(tokenizer, &plain_template()?, &texts)
                .ok_or_else(|| Error::invalid_request("the chat template does not support these messages"))?;
            (
                frame,
                Some("the runtime does not support the file's chat template; ChatML is used"),
            )
        }
    };
    Ok(Prompt {
        tokens: tokens(tokenizer, &frame, &texts),
        notice,
    })
}

/// Role and text of each message.
fn texts(chat: &ChatRequest) -> Result<Vec<(&'static str, String)>, Error> {
    let mut texts: Vec<(&'static str, String)> = Vec::new();
    let mut bytes = 0;
    for message in &chat.messages {
        let role = match message.role {
            Role::System | Role::Developer => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => return Err(unsupported("tool results")),
        };
        let mut text = String::new();
        for part in &message.parts {
            match &part.body {
                PartBody::Text(part) => text.push_str(part),
                PartBody::Media(_) => return Err(unsupported("media")),
                PartBody::ToolCall(_) | PartBody::ToolResult(_) => return Err(unsupported("tools")),
                // Reasoning is not repeated to a model, and dialect-specific parts have no meaning for it.
                PartBody::Reasoning(_) | PartBody::Refusal(_) | PartBody::Unknown { .. } => {}
            }
        }
        bytes += text.len();
        if bytes > limits::PROMPT_BYTES_MAX {
            let message = format!("the messages exceed {} bytes", limits::PROMPT_BYTES_MAX);
            return Err(Error::new(ErrorKind::ContextWindow, Phase::BeforeSend, message));
        }
        match texts.last_mut() {
            // Templates support only one system message.
            Some((last, known)) if *last == "system" && role == "system" => {
                known.push_str("\n\n");
                known.push_str(&text);
            }
            _ => texts.push((role, text)),
        }
    }
    if texts.is_empty() {
        return Err(Error::invalid_request("the request has no messages"));
    }
    Ok(texts)
}

/// The rendered template with placeholders for the texts.
fn frame(
    tokenizer: &Tokenizer,
    template: &LlamaChatTemplate,
    texts: &[(&'static str, String)],
) -> Option<String> {
    let messages = texts
        .iter()
        .enumerate()
        .map(|(index, (role, _))| LlamaChatMessage::new(String::from(*role), placeholder(index)).ok());
    let messages: Vec<_> = messages.collect::<Option<_>>()?;
    let frame = tokenizer
        .llama
        .apply_chat_template(template, &messages, true)
        .ok()?;
    // A template that omits or repeats a message does not support these messages.
    let whole = (0..texts.len()).all(|index| frame.matches(&placeholder(index)).count() == 1);
    whole.then_some(frame)
}

fn tokens(tokenizer: &Tokenizer, frame: &str, texts: &[(&'static str, String)]) -> Vec<LlamaToken> {
    let mut tokens = Vec::new();
    let mut rest = frame;
    for (index, (_, text)) in texts.iter().enumerate() {
        if let Some((before, after)) = rest.split_once(&placeholder(index)) {
            tokens.extend(tokenizer.tokenize(before, tokens.is_empty(), true));
            tokens.extend(tokenizer.tokenize(text, false, false));
            rest = after;
        }
    }
    tokens.extend(tokenizer.tokenize(rest, tokens.is_empty(), true));
    tokens
}

fn placeholder(index: usize) -> String {
    format!("[[message {index} of this conversation]]")
}

fn unsupported(what: &str) -> Error {
    let message = format!("embedded models do not support {what}");
    Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message)
}
