//! `[backends.command]`: how a program is called, its input, and how its answer is parsed. Values of callers
//! are inserted only at the slots of the argument template.

use std::collections::BTreeMap;

use ir::operation::{Feature, Operation};
use providers::command::{CommandOptions, InputFormat, OutputFormat, Slot};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Variables that are passed to every program; others must be listed in `env`.
const USUAL_ENVIRONMENT: [&str; 5] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ"];

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Program {
    /// The program, and the template of its arguments.
    pub(crate) argv: Vec<String>,
    script: Option<String>,
    input: Option<ProgramInput>,
    reply: Option<Reply>,
    json_pointer: Option<String>,
    voice: Option<String>,
    voices: BTreeMap<String, String>,
    language: Option<String>,
    languages: Vec<String>,
    formats: Vec<String>,
    speed_unit: Option<f64>,
    /// Names of additional variables to pass.
    env: Vec<String>,
    set_env: BTreeMap<String, String>,
    processes_max: Option<usize>,
    queue_max: Option<usize>,
    output_bytes_max: Option<u64>,
    pub(crate) memory_bytes_max: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ProgramInput {
    Text,
    Json,
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Text,
    Json,
    Bytes,
}

impl Program {
    /// Merges the keys of the preset with those of the configuration, which take precedence.
    pub(crate) fn over(
        preset: Option<&Map<String, Value>>,
        own: Option<&Map<String, Value>>,
    ) -> Result<Self, String> {
        let mut keys = preset.cloned().unwrap_or_default();
        keys.extend(own.cloned().unwrap_or_default());
        let program: Self = serde_json::from_value(Value::Object(keys)).map_err(|error| error.to_string())?;
        match program.argv.is_empty() {
            true => Err(String::from("`argv` is empty")),
            false => Ok(program),
        }
    }

    /// The program as written in `argv`.
    pub(crate) fn called(&self) -> &str {
        self.argv.first().map_or("", String::as_str)
    }

    /// The options of the back-end, without the path of the program and the environment.
    pub(crate) fn options(&self, name: &str, operation: Operation) -> Result<CommandOptions, String> {
        let arguments = self.argv.get(1..).unwrap_or_default();
        let mut options = CommandOptions::new(name, operation, self.called(), arguments)
            .map_err(|error| error.to_string())?;
        options.script.clone_from(&self.script);
        if let Some(input) = self.input {
            options.input = match input {
                ProgramInput::Text => InputFormat::Text,
                ProgramInput::Json => InputFormat::Json,
                ProgramInput::Bytes => InputFormat::Bytes,
            };
        }
        let pointer = self.json_pointer.clone().unwrap_or_default();
        match self.reply {
            Some(Reply::Text) => options.reply = OutputFormat::Text,
            Some(Reply::Bytes) => options.reply = OutputFormat::Bytes,
            Some(Reply::Json) => options.reply = OutputFormat::Json { pointer },
            None if self.json_pointer.is_some() => options.reply = OutputFormat::Json { pointer },
            None => {}
        }
        options.voice.clone_from(&self.voice);
        options.voices.clone_from(&self.voices);
        options.language.clone_from(&self.language);
        options.languages.clone_from(&self.languages);
        options.formats.clone_from(&self.formats);
        options.speed_unit = self.speed_unit;
        options.processes_max = self.processes_max.unwrap_or(options.processes_max);
        options.queue_max = self.queue_max.unwrap_or(options.queue_max);
        options.output_bytes_max = self.output_bytes_max.unwrap_or(options.output_bytes_max);
        Ok(options)
    }

    /// The variables passed to the program, with their values in the environment of this process.
    pub(crate) fn environment(&self) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        let names = USUAL_ENVIRONMENT
            .into_iter()
            .chain(self.env.iter().map(String::as_str));
        let passed = names.filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
        let set = self
            .set_env
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        passed.chain(set).collect()
    }

    /// The features that follow from the template.
    pub(crate) fn features(&self, operation: Operation) -> Vec<Feature> {
        let Ok(options) = self.options("", operation) else {
            return Vec::new();
        };
        let uses = |slot| options.arguments.uses(slot);
        let mut features = Vec::new();
        match operation {
            Operation::ChatCompletions => features.push(Feature::Stream),
            Operation::SpeechToText => {
                features.push(Feature::AudioInput);
                let known = uses(Slot::Language) || !self.languages.is_empty();
                features.extend(known.then_some(Feature::Language));
            }
            Operation::TextToSpeech => {
                features.push(Feature::AudioOutput);
                features.extend((!self.voices.is_empty()).then_some(Feature::Voices));
                features.extend((!self.formats.is_empty()).then_some(Feature::Formats));
            }
            Operation::Embeddings => {
                features.extend((options.input == InputFormat::Json).then_some(Feature::Batch));
            }
            Operation::ImageGeneration | Operation::RealtimeVoice => {}
        }
        features
    }
}
