//! Lowers a module and an input to the canonical request for a back-end: the system message states the
//! contract, the user message is the rendered prompt, and the output schema constrains the answer where the
//! back-end supports schemas.

mod input;
mod output;
mod published_schema;
mod system;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use ir::media::Media;
use ir::{ChatRequest, Feature, Generation, GenerationOptions, Message, Part, Request, ResponseFormat, Role};
use serde_json::{Map, Value};

pub use input::{AdmittedInput, admit_input};
pub(crate) use output::data_schema;
pub use output::output_schema;
pub use published_schema::{envelope_schema, input_schema};
pub(crate) use system::{SCHEMA_LEAD, message as system_message};

use crate::compose::Results;
use crate::module::Module;
use crate::prompt::{self, PromptPiece};

/// Request parameters that are not part of the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LowerOptions {
    pub request_id: String,
    /// The requested model; a back-end with a fixed model ignores it.
    pub model: Option<String>,
    /// The only back-end to use, if set.
    pub backend: Option<String>,
    /// Settings that take precedence over those of the module.
    pub generation: GenerationOptions,
    /// The maximum length of the answer if nothing else sets it.
    pub default_output_tokens: Option<u64>,
}

pub fn lower(module: &Module, input: &Map<String, Value>, options: &LowerOptions) -> Request {
    lower_with(module, input, &Results::default(), options)
}

/// As [`lower`], with the results of other modules.
pub fn lower_with(
    module: &Module,
    input: &Map<String, Value>,
    results: &Results,
    options: &LowerOptions,
) -> Request {
    lower_with_media(module, input, results, Vec::new(), options)
}

/// As [`lower_with`], with media, placed at the media placeholder in the order of the input.
pub fn lower_with_media(
    module: &Module,
    input: &Map<String, Value>,
    results: &Results,
    media: Vec<Media>,
    options: &LowerOptions,
) -> Request {
    let system = Message::text(Role::System, module.system_message());
    let format = || ResponseFormat::JsonSchema {
        name: Some(module.manifest.name.clone()),
        description: None,
        schema: module.output_schema(),
        strict: None,
    };
    let chat = ChatRequest {
        model: options.model.clone(),
        messages: vec![system, user_message(module, input, results, media)],
        generation: generation(module, options),
        response_format: module.manifest.runtime.structured_output.then(format),
        ..ChatRequest::default()
    };
    let mut request = Request::chat(options.request_id.clone(), chat);
    request.requirements.preferred_features = preferred(module);
    request.routing.backend.clone_from(&options.backend);
    request
}

fn generation(module: &Module, options: &LowerOptions) -> Generation {
    let mut generation = Generation {
        // A streamed answer can be observed, timed out and failed over; a single response cannot.
        // Back-ends are therefore asked to stream even if the caller waits for the end.
        stream: Some(true),
        ..Generation::default()
    };
    options.generation.fill(&mut generation);
    module.manifest.generation.fill(&mut generation);
    generation.max_tokens = generation.max_tokens.or(options.default_output_tokens);
    generation
}

/// The preferred capabilities of a module as routing features.
fn preferred(module: &Module) -> BTreeSet<Feature> {
    let words = module.manifest.runtime.preferred_capabilities.iter();
    words
        .filter_map(|word| match word.as_str() {
            "json_mode" => Some(Feature::JsonSchema),
            "long_context" => Some(Feature::LongContext),
            "function_calling" => Some(Feature::Tools),
            "vision" => Some(Feature::ImageInput),
            _ => None,
        })
        .collect()
}

/// The rendered prompt, followed by the input if the template does not contain it.
fn user_message(
    module: &Module,
    input: &Map<String, Value>,
    results: &Results,
    media: Vec<Media>,
) -> Message {
    let prompt = prompt::render_with(module, input, results);
    let shows_apart = !prompt.shows_input && !input.is_empty();
    // Parts are large and live as long as the run; allocate exactly as many as needed.
    let mut parts: Vec<Part> =
        Vec::with_capacity(prompt.pieces.len() + media.len() + usize::from(shows_apart));
    let mut media = media.into_iter().map(Part::from);
    for piece in prompt.pieces {
        match piece {
            PromptPiece::Text(text) => parts.push(Part::text(text)),
            // All media go to the first placeholder; none is sent twice.
            PromptPiece::Media => parts.extend(media.by_ref()),
        }
    }
    if shows_apart {
        let json = serde_json::to_string_pretty(input).unwrap_or_default();
        parts.push(Part::text(format!("\n\nInput:\n{json}\n")));
    }
    parts.extend(media);
    Message::new(Role::User, parts)
}
