//! `[[backends]]`: the configured back-ends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ir::operation::{Feature, Operation};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Program;
use crate::config::preset::Preset;

/// A configured back-end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Backend {
    pub(crate) name: String,
    pub(crate) kind: BackendKind,
    /// The URL before `/chat/completions`; for anthropic before `/v1/messages`.
    pub(crate) base_url: Option<String>,
    /// The only model of the back-end.
    pub(crate) model: Option<String>,
    /// The model for requests that name none.
    pub(crate) default_model: Option<String>,
    credential: Option<String>,
    /// A pool of keys instead of one.
    credentials: Option<Vec<String>>,
    operations: Option<BTreeSet<Operation>>,
    features: Option<BTreeSet<Feature>>,
    #[serde(default)]
    features_disabled: BTreeSet<Feature>,
    /// The script of a scripted back-end.
    pub(crate) script: Option<PathBuf>,
    /// The preset of a back-end of kind `command`.
    preset: Option<String>,
    /// The program in full, or the keys that override the preset.
    command: Option<Map<String, Value>>,
    /// Relative share of requests; a back-end with weight 0 gets no new requests.
    #[serde(default = "usual_weight")]
    pub(crate) weight: u32,
    /// Back-ends with higher priority are tried first.
    #[serde(default)]
    pub(crate) priority: i32,
    pub(crate) region: Option<String>,
    price: Option<Price>,
    /// Settings of the model, where neither the request nor the module has one.
    #[serde(default)]
    pub(crate) generation: ir::GenerationOptions,
    #[serde(default)]
    pub(crate) limits: Limits,
    pub(crate) timeouts: Option<TimeoutOverrides>,
    /// Headers of every call.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
}

fn usual_weight() -> u32 {
    100
}

/// The kind of a back-end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BackendKind {
    Openai,
    Anthropic,
    Gemini,
    Ollama,
    Local,
    Command,
    Scripted,
}

/// Price per million tokens.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Price {
    input_usd: Option<f64>,
    /// Price of input tokens read from the vendor's cache.
    cached_input_usd: Option<f64>,
    output_usd: Option<f64>,
}

/// Limits of a back-end.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) inflight: Option<u32>,
    pub(crate) requests_per_minute: Option<u32>,
}

/// Timeouts of one back-end; the general ones apply to missing values.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimeoutOverrides {
    pub(crate) connect_ms: Option<u64>,
    pub(crate) first_byte_ms: Option<u64>,
    pub(crate) idle_ms: Option<u64>,
    pub(crate) total_ms: Option<u64>,
}

impl Backend {
    /// The names of its keys: none, one, or a pool.
    pub(crate) fn keys(&self) -> Vec<&str> {
        let pool = self.credentials.iter().flatten();
        self.credential.iter().chain(pool).map(String::as_str).collect()
    }

    /// The supported operations.
    pub(crate) fn operations(&self) -> BTreeSet<Operation> {
        let usual = || {
            let preset = self.preset().map(|preset| BTreeSet::from([preset.operation]));
            preset.unwrap_or_else(|| {
                self.kind
                    .operations(self.base_url.is_none() && self.model.is_none())
            })
        };
        self.operations.clone().unwrap_or_else(usual)
    }

    /// The supported features: as declared, otherwise the defaults of the kind. Every kind supports system
    /// prompts.
    pub(crate) fn features(&self) -> BTreeSet<Feature> {
        let mut features = match &self.features {
            Some(declared) => declared.clone(),
            None if self.kind == BackendKind::Command => self.program_features(),
            None if self.embeds() => local::Embedder::features().into_iter().collect(),
            None => {
                let own_address = self.base_url.is_none();
                let mut features = self.kind.features(own_address);
                for operation in self.operations() {
                    features.extend(self.kind.features_of(operation, own_address));
                }
                features
            }
        };
        features.insert(Feature::SystemRole);
        features.retain(|feature| !self.features_disabled.contains(feature));
        features
    }

    /// Whether this is the embedded encoder and not the embedded generator.
    pub(crate) fn embeds(&self) -> bool {
        self.kind == BackendKind::Local && self.operations().contains(&Operation::Embeddings)
    }

    pub(crate) fn preset(&self) -> Option<&'static Preset> {
        Preset::named(self.preset.as_deref()?)
    }

    /// The settings of the program, merged from the preset and the configuration.
    pub(crate) fn program(&self) -> Result<Program, String> {
        let preset = self.preset().map(|preset| &preset.command);
        Program::over(preset, self.command.as_ref())
    }

    fn program_features(&self) -> BTreeSet<Feature> {
        if let Some(preset) = self.preset() {
            return preset.features.iter().cloned().collect();
        }
        let operation = self.operations().into_iter().next();
        let program = self.program().ok();
        let features = program
            .zip(operation)
            .map(|(program, operation)| program.features(operation));
        features.unwrap_or_default().into_iter().collect()
    }

    /// The path of the program, if the configuration contains one.
    pub(super) fn own_program_path(&self) -> Option<&str> {
        let argv = self.command.as_ref()?.get("argv")?.as_array()?;
        let first = argv.first()?.as_str()?;
        first.contains('/').then_some(first)
    }

    pub(super) fn set_program_path(&mut self, path: &Path) {
        let argv = self.command.as_mut().and_then(|command| command.get_mut("argv"));
        if let Some(first) = argv.and_then(|argv| argv.get_mut(0)) {
            *first = Value::from(path.display().to_string());
        }
    }

    pub(crate) fn price(&self) -> Option<ir::Price> {
        let price = self.price?;
        Some(ir::Price::per_million(
            price.input_usd,
            price.cached_input_usd,
            price.output_usd,
        ))
    }
}

impl BackendKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Local => "local",
            Self::Command => "command",
            Self::Scripted => "scripted",
        }
    }

    /// The default operations of this kind. Operations other than chat are assumed only for the vendor's URL
    /// without a fixed model.
    fn operations(self, any_model_of_vendor: bool) -> BTreeSet<Operation> {
        let mut operations = BTreeSet::from([Operation::ChatCompletions]);
        match self {
            Self::Openai if any_model_of_vendor => operations.extend([
                Operation::Embeddings,
                Operation::ImageGeneration,
                Operation::SpeechToText,
                Operation::TextToSpeech,
            ]),
            Self::Gemini | Self::Ollama if any_model_of_vendor => {
                operations.insert(Operation::Embeddings);
            }
            _ => {}
        }
        operations
    }

    /// The default features of this operation. Image and token input are assumed only for the vendor's URL.
    fn features_of(self, operation: Operation, own_address: bool) -> BTreeSet<Feature> {
        let mut features = BTreeSet::new();
        match operation {
            Operation::Embeddings => {
                features.insert(Feature::Batch);
                if own_address || self == Self::Ollama {
                    features.insert(Feature::Dimensions);
                }
                if own_address && self == Self::Openai {
                    features.insert(Feature::TokenInput);
                }
            }
            Operation::ImageGeneration if own_address => {
                features.extend([Feature::ImageInput, Feature::Mask]);
            }
            Operation::SpeechToText => features.extend([Feature::Language, Feature::Timestamps]),
            Operation::TextToSpeech => features.extend([Feature::Voices, Feature::Formats]),
            Operation::ChatCompletions | Operation::ImageGeneration | Operation::RealtimeVoice => {}
        }
        features
    }

    /// The default features of this kind. For the vendor's URL the features of its models are assumed; for
    /// other URLs only features that nearly all servers support.
    fn features(self, own_address: bool) -> BTreeSet<Feature> {
        let mut features = BTreeSet::from([Feature::Stream]);
        match self {
            Self::Openai => features.extend([Feature::JsonSchema, Feature::Tools, Feature::Seed]),
            Self::Anthropic => features.extend([Feature::Tools]),
            Self::Gemini => features.extend([Feature::JsonSchema, Feature::Tools, Feature::Seed]),
            Self::Ollama | Self::Local => features.extend([Feature::JsonSchema, Feature::Seed]),
            Self::Command => {}
            Self::Scripted => features.extend([
                Feature::JsonSchema,
                Feature::Tools,
                Feature::Seed,
                Feature::ImageInput,
                Feature::AudioInput,
                Feature::VideoInput,
                Feature::DocumentInput,
            ]),
        }
        let seeing = [Feature::ImageInput, Feature::DocumentInput];
        match self {
            Self::Openai | Self::Anthropic if own_address => features.extend(seeing),
            Self::Gemini if own_address => {
                features.extend(seeing);
                features.extend([Feature::AudioInput, Feature::VideoInput]);
            }
            _ => {}
        }
        features
    }
}
