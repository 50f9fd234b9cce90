//! The program's input: a request as text, as JSON, or as audio bytes.

use ir::adaptation::{Component, Ledger};
use ir::envelope::TranscriptionRequest;
use ir::media::{MediaHandle, sniff};
use ir::{ChatRequest, Dialect, Error, ErrorKind, MediaSource, Payload, Phase, Request, Role};
use serde_json::json;

use super::options::{CommandOptions, InputFormat};
use crate::limits::COMMAND_INPUT_BYTES_MAX;

/// The input and the extension of its file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommandInput {
    pub(super) content: Content,
    pub(super) extension: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    /// Media outside of memory.
    Handle(MediaHandle),
}

pub(super) fn input(request: &Request, options: &CommandOptions) -> Result<CommandInput, Error> {
    if request.operation() != options.operation {
        let operation = request.operation().as_str();
        let message = format!("back-end {} does not support {operation}", options.name);
        return Err(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message));
    }
    let text = |text: String| CommandInput {
        content: Content::Bytes(text.into_bytes()),
        extension: "txt",
    };
    let made = match (&request.payload, options.input) {
        (Payload::Chat(chat), InputFormat::Text) => text(transcript(chat)?),
        (Payload::Chat(chat), InputFormat::Json) => {
            let mut ledger = Ledger::new(Component::Adapter);
            let body = wire::chat::encode_request(Dialect::OpenaiChat, chat, &mut ledger)?;
            json_input(&body)?
        }
        (Payload::Embeddings(embeddings), InputFormat::Json) => json_input(&json!(embeddings.input))?,
        (Payload::Embeddings(embeddings), InputFormat::Text) => match embeddings.input.as_slice() {
            [one] => text(one.clone()),
            _ => return Err(unsupported(options, "accepts one text per request")),
        },
        (Payload::Speech(speech), InputFormat::Text) => text(speech.input.clone()),
        (Payload::Image(image), InputFormat::Text) => text(image.prompt.clone()),
        (Payload::Transcription(asked), InputFormat::Bytes) => audio(asked, options)?,
        _ => return Err(unsupported(options, "is not configured for this kind of input")),
    };
    if made.content.size_bytes() > COMMAND_INPUT_BYTES_MAX as u64 {
        let message = format!("the input is larger than {COMMAND_INPUT_BYTES_MAX} bytes");
        return Err(Error::new(ErrorKind::ContextWindow, Phase::BeforeSend, message));
    }
    Ok(made)
}

impl Content {
    fn size_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Handle(held) => held.size_bytes(),
        }
    }
}

fn json_input(value: &serde_json::Value) -> Result<CommandInput, Error> {
    let bytes = serde_json::to_vec(value).map_err(|error| Error::invalid_request(error.to_string()))?;
    Ok(CommandInput {
        content: Content::Bytes(bytes),
        extension: "json",
    })
}

/// The text of a single message; several messages are prefixed with their roles.
fn transcript(chat: &ChatRequest) -> Result<String, Error> {
    if let [only] = chat.messages.as_slice() {
        return Ok(only.joined_text());
    }
    let lines = chat.messages.iter().map(|message| {
        let who = match message.role {
            Role::System | Role::Developer => "System",
            Role::User => "User",
            Role::Assistant => "Assistant",
            Role::Tool => "Tool",
        };
        format!("{who}: {}", message.joined_text())
    });
    let lines: Vec<_> = lines.collect();
    match lines.is_empty() {
        true => Err(Error::invalid_request("the request has no messages")),
        false => Ok(lines.join("\n\n")),
    }
}

fn audio(asked: &TranscriptionRequest, options: &CommandOptions) -> Result<CommandInput, Error> {
    let content = match &asked.audio.source {
        MediaSource::Inline(data) => {
            let bytes = data.decode();
            Content::Bytes(bytes.map_err(|_| Error::invalid_request("the audio is not base64"))?)
        }
        MediaSource::Handle(held) => Content::Handle(held.clone()),
        _ => {
            return Err(unsupported(
                options,
                "requires audio bytes, not a reference to them",
            ));
        }
    };
    let sniffed = match &content {
        Content::Bytes(bytes) => sniff(bytes),
        Content::Handle(held) => sniff(held.head()),
    };
    let mime = sniffed.map(String::from).or_else(|| asked.audio.mime.clone());
    let format = mime.as_deref().and_then(format_of);
    let taken = |format: &&str| options.formats.iter().any(|taken| taken == format);
    match format.filter(|format| options.formats.is_empty() || taken(format)) {
        Some(extension) => Ok(CommandInput { content, extension }),
        None => {
            let what = format!(
                "accepts {}, and this audio is {}",
                list(&options.formats),
                shown(mime.as_deref())
            );
            Err(unsupported(options, &what))
        }
    }
}

/// The short name of an audio type. Video types with the same containers are accepted, because programs read
/// them.
fn format_of(mime: &str) -> Option<&'static str> {
    let mime = mime.split(';').next().unwrap_or_default().trim();
    Some(match mime {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/ogg" | "application/ogg" | "audio/opus" => "ogg",
        "audio/flac" | "audio/x-flac" => "flac",
        "audio/webm" | "video/webm" => "webm",
        "audio/mp4" | "video/mp4" | "audio/m4a" | "audio/x-m4a" => "m4a",
        "audio/aac" => "aac",
        _ => return None,
    })
}

fn list(formats: &[String]) -> String {
    match formats.is_empty() {
        true => String::from("audio"),
        false => formats.join(", "),
    }
}

fn shown(mime: Option<&str>) -> &str {
    let plain = |mime: &&str| mime.len() <= 80 && !mime.chars().any(char::is_control);
    mime.filter(plain).unwrap_or("of an unknown type")
}

fn unsupported(options: &CommandOptions, what: &str) -> Error {
    let message = format!("back-end {} {what}", options.name);
    Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message)
}
