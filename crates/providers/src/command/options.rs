//! What the person who configures a program says about it, ready to be used: paths are found, the environment
//! is gathered, templates are read. Nothing here comes from a caller.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use engine::Depot;
use ir::Operation;

use super::template::{Slot, Template, TemplateError};
use crate::limits;

#[derive(Clone, Debug)]
pub struct CommandOptions {
    pub name: String,
    /// What it does. A program does one thing.
    pub operation: Operation,
    /// The only model that it answers with.
    pub model: Option<String>,
    /// The model that is named to it where a request names none.
    pub default_model: Option<String>,
    pub program: PathBuf,
    pub arguments: Template,
    /// A text that is written beside the input, for programs that are interpreters.
    pub script: Option<String>,
    pub input: InputFormat,
    pub reply: OutputFormat,
    /// The voice that speaks where none is asked for, or one that is not known.
    pub voice: Option<String>,
    /// What callers call voices, and what the program calls them.
    pub voices: BTreeMap<String, String>,
    /// The language where none is asked for.
    pub language: Option<String>,
    /// The only languages that it understands; where there are none, any word for one is passed on.
    pub languages: Vec<String>,
    /// What audio it makes or takes; the first is what it makes where nobody says.
    pub formats: Vec<String>,
    /// What the program calls the usual speed. Without one, it takes a factor.
    pub speed_unit: Option<f64>,
    pub environment: Vec<(OsString, OsString)>,
    pub timeout: Duration,
    pub output_bytes_max: u64,
    pub memory: Option<MemoryLimit>,
    pub processes_max: usize,
    /// Calls that wait while so many run.
    pub queue_max: usize,
    /// Where pictures and sound go that it gives.
    pub depot: Depot,
}

/// The most address space that each process of a program may take, and who holds it to that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Where util-linux's `prlimit` is.
    pub launcher: PathBuf,
    pub bytes: u64,
}

/// How a request is written down for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// The words alone. Of a conversation, who speaks stands before each message.
    Text,
    /// Chat as the body of a chat completion, embeddings as a list of texts.
    Json,
    /// Audio as it came.
    Bytes,
}

/// How the program's output is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    Text,
    /// JSON, and the pointer to the answer in it.
    Json {
        pointer: String,
    },
    Bytes,
}

impl CommandOptions {
    /// With the usual limits, reading and writing what fits the operation.
    ///
    /// # Errors
    /// When the template names a place that nothing can fill.
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
            depot: Depot::default(),
        })
    }

    /// What is wrong with these options as a whole. A place that stands alone in an argument must always have
    /// a value: without it, the option before it would swallow the next one.
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
                    (true, false) => Some(String::from("`{script}` is used, and there is no `script`")),
                    (false, true) => Some(String::from(
                        "there is a `script`, and no `{script}` that uses it",
                    )),
                    _ => None,
                }
            })
    }
}
