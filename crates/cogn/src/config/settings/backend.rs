//! `[[backends]]`: instances one can call.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ir::operation::{Feature, Operation};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Program;
use crate::config::preset::Preset;

/// An instance one can call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Backend {
    pub(crate) name: String,
    pub(crate) kind: BackendKind,
    /// What stands before `/chat/completions`; for anthropic before `/v1/messages`.
    pub(crate) base_url: Option<String>,
    /// The only model it answers with.
    pub(crate) model: Option<String>,
    /// The model it answers with where a request names none.
    pub(crate) default_model: Option<String>,
    credential: Option<String>,
    /// A pool of keys in place of one.
    credentials: Option<Vec<String>>,
    operations: Option<BTreeSet<Operation>>,
    features: Option<BTreeSet<Feature>>,
    #[serde(default)]
    lacks: BTreeSet<Feature>,
    /// The file that a scripted back-end plays.
    pub(crate) script: Option<PathBuf>,
    /// The program behind a back-end of kind `command`, by a name that is known.
    recipe: Option<String>,
    /// The same in full, or what differs from the recipe.
    command: Option<Map<String, Value>>,
    /// Share of the work among equals; 0 takes no new work.
    #[serde(default = "usual_weight")]
    pub(crate) weight: u32,
    /// Higher is tried first.
    #[serde(default)]
    pub(crate) priority: i32,
    pub(crate) region: Option<String>,
    price: Option<Price>,
    #[serde(default)]
    pub(crate) limits: Limits,
    pub(crate) timeouts: Option<TimeoutOverrides>,
    /// Headers that every call carries.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
}

fn usual_weight() -> u32 {
    100
}

/// What stands behind a back-end.
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

/// What a million tokens cost.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Price {
    input_usd: Option<f64>,
    /// For tokens that were read from the vendor's cache.
    cached_input_usd: Option<f64>,
    output_usd: Option<f64>,
}

/// How much an instance is asked at most.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) inflight: Option<u32>,
    pub(crate) requests_per_minute: Option<u32>,
}

/// An instance's own time limits; the general ones hold for what it leaves out.
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

    /// What can be asked of it.
    pub(crate) fn operations(&self) -> BTreeSet<Operation> {
        let usual = || {
            let recipe = self.recipe().map(|recipe| BTreeSet::from([recipe.operation]));
            recipe.unwrap_or_else(|| {
                self.kind
                    .operations(self.base_url.is_none() && self.model.is_none())
            })
        };
        self.operations.clone().unwrap_or_else(usual)
    }

    /// What it can do: as declared, else as its kind usually can. Every kind takes a system prompt.
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
        features.retain(|feature| !self.lacks.contains(feature));
        features
    }

    /// Whether this is the embedded encoder, and not the embedded model that writes.
    pub(crate) fn embeds(&self) -> bool {
        self.kind == BackendKind::Local && self.operations().contains(&Operation::Embeddings)
    }

    pub(crate) fn recipe(&self) -> Option<&'static Preset> {
        Preset::named(self.recipe.as_deref()?)
    }

    /// How the program is called, whatever of it comes from a recipe.
    pub(crate) fn program(&self) -> Result<Program, String> {
        let recipe = self.recipe().map(|recipe| &recipe.command);
        Program::over(recipe, self.command.as_ref())
    }

    fn program_features(&self) -> BTreeSet<Feature> {
        if let Some(recipe) = self.recipe() {
            return recipe.features.iter().cloned().collect();
        }
        let operation = self.operations().into_iter().next();
        let program = self.program().ok();
        let features = program
            .zip(operation)
            .map(|(program, operation)| program.features(operation));
        features.unwrap_or_default().into_iter().collect()
    }

    /// The program, where the configuration says it by a path of its own.
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

    /// What can be asked of an instance of this kind where nobody says. Only behind the vendor's own address, and
    /// with any of its models, is there more than conversation.
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

    /// What nearly all can who do this operation. Of pictures and tokens only the vendor's own is believed.
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

    /// What an instance of this kind can do where nobody says. Behind the vendor's own address stand the
    /// vendor's own models; another address may hide anything, so that only what nearly all can is assumed.
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
