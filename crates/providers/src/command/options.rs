//! The validated configuration of a program: resolved paths, environment, parsed templates. Nothing in it
//! comes from a caller.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use ir::Operation;
use spill::SpillStore;

use super::template::{Slot, Template, TemplateError};
use crate::limits;

#[derive(Clone, Debug)]
pub struct CommandOptions {
    pub name: String,
    /// The operation of the program; a program has exactly one.
    pub operation: Operation,
    /// The only model that it serves.
    pub model: Option<String>,
    /// The model for requests that name none.
    pub default_model: Option<String>,
    pub program: PathBuf,
    pub arguments: Template,
    /// Script text that is written to a file next to the input, for programs that are interpreters.
    pub script: Option<String>,
    pub input: InputFormat,
    pub reply: OutputFormat,
    /// The voice for requests without a voice or with an unknown one.
    pub voice: Option<String>,
    /// Voice names of the API, mapped to those of the program.
    pub voices: BTreeMap<String, String>,
    /// The language for requests that name none.
    pub language: Option<String>,
    /// The only supported languages; if empty, any valid language name is passed on.
    pub languages: Vec<String>,
    /// Audio formats that it produces or accepts; the first is the default output format.
    pub formats: Vec<String>,
    /// The program's value for normal speed. Without one, it takes a factor.
    pub speed_unit: Option<f64>,
    pub environment: Vec<(OsString, OsString)>,
    pub timeout: Duration,
    pub output_bytes_max: u64,
    pub memory: Option<MemoryLimit>,
    pub processes_max: usize,
    /// Maximum number of calls that wait for a free process slot.
    pub queue_max: usize,
    /// Spill store for the images and audio that it returns.
    pub spill: SpillStore,
}

/// Address space limit of each process of a program, and the launcher that sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Path of util-linux's `prlimit`.
    pub launcher: PathBuf,
    pub bytes: u64,
}

/// How a request is encoded as program input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// Text only. Messages of a conversation are prefixed with their roles.
    Text,
    /// Chat as the body of a chat completion, embeddings as a list of texts.
    Json,
    /// Audio as received.
    Bytes,
}

/// How the program's output is decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    Text,
    /// JSON, and the pointer to the value in it.
    Json {
        pointer: String,
    },
    Bytes,
}

impl CommandOptions {
    /// With default limits, and with the input and output format of the operation.
    ///
    /// # Errors
    /// When the template contains an unknown placeholder.
    pub fn new(
        name: impl Into<String>,
        operation: Operation,
        program: impl Into<PathBuf>,
        arguments: &[impl AsRef<str>],
    ) -> Result<Self, TemplateError> {
        let json = || OutputFormat::Json {
            pointer: String::new(),
        };
        let (input, reply) = match operation {
            Operation::SpeechToText => (InputFormat::Bytes, OutputFormat::Text),
            Operation::TextToSpeech | Operation::ImageGeneration => (InputFormat::Text, OutputFormat::Bytes),
            Operation::Embeddings => (InputFormat::Json, json()),
            Operation::ChatCompletions | Operation::RealtimeVoice => (InputFormat::Text, OutputFormat::Text),
        };
        Ok(Self {
            name: name.into(),
            operation,
            model: None,
            default_model: None,
            program: program.into(),
            arguments: Template::parse(arguments)?,
            script: None,
            input,
            reply,
            voice: None,
            voices: BTreeMap::new(),
            language: None,
            languages: Vec::new(),
            formats: Vec::new(),
            speed_unit: None,
            environment: Vec::new(),
            timeout: limits::COMMAND_TIME_MAX,
            output_bytes_max: limits::COMMAND_OUTPUT_BYTES_MAX,
            memory: None,
            processes_max: std::thread::available_parallelism().map_or(1, usize::from),
            queue_max: limits::COMMAND_QUEUE_MAX,
            spill: SpillStore::default(),
        })
    }

    /// What is inconsistent in these options. A placeholder that is a whole argument must always have a
    /// value: without it, the preceding option would take the next argument as its value.
    pub fn problem(&self) -> Option<String> {
        let missing = |slot: Slot, has: bool, key: &str| {
            let bare = self.arguments.is_whole_argument(slot);
            (bare && !has).then(|| {
                format!(
                    "`{{{}}}` is an argument by itself, so that it always needs a value: set `{key}`, or write it \
                     as part of one argument, such as `--option={{{}}}`",
                    slot.as_str(),
                    slot.as_str()
                )
            })
        };
        let modelled = self.model.is_some() || self.default_model.is_some();
        missing(Slot::Voice, self.voice.is_some(), "voice")
            .or_else(|| missing(Slot::Language, self.language.is_some(), "language"))
            .or_else(|| missing(Slot::Format, !self.formats.is_empty(), "formats"))
            .or_else(|| missing(Slot::Model, modelled, "model"))
            .or_else(|| {
                let script = self.arguments.uses(Slot::Script);
                match (script, self.script.is_some()) {
                    (true, false) => Some(String::from("`{script}` is used, but `script` is not set")),
                    (false, true) => Some(String::from("`script` is set, but no argument uses `{script}`")),
                    _ => None,
                }
            })
    }
}
