//! From a module and an input to the canonical request that a back-end answers: the system message
//! states the contract, the user message is the rendered prompt, and the output schema holds the answer
//! to both where a back-end can be held to one.

mod input;
mod output;
mod published_schema;
mod system;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use ir::media::Media;
use ir::{ChatRequest, Feature, Generation, Message, Part, Request, ResponseFormat, Role};
use serde_json::{Map, Value};

pub use input::admit_input;
pub use output::output_schema;
pub use published_schema::{envelope_schema, input_schema};
pub(crate) use system::message as system_message;

use crate::compose::Results;
use crate::module::Module;
use crate::prompt::{self, PromptPiece};

/// What the module itself does not say about a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LowerOptions {
    pub request_id: String,
    /// The model that is asked for; a back-end that is bound to one answers with its own.
    pub model: Option<String>,
    /// The only back-end that may answer.
    pub backend: Option<String>,
    /// The answer may come in one piece: nobody looks at it before it is there, and its silence is no news.
    pub whole: bool,
}

pub fn lower(module: &Module, input: &Map<String, Value>, options: &LowerOptions) -> Request {
    lower_with(module, input, &Results::default(), options)
}

/// The same for a module that others have worked for.
pub fn lower_with(
    module: &Module,
    input: &Map<String, Value>,
    results: &Results,
    options: &LowerOptions,
) -> Request {
    lower_with_media(module, input, results, Vec::new(), options)
}

/// The same with media, which stand where the prompt has a place for them, in the order of the input.
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
        generation: Generation {
            // An answer that comes in pieces can be watched, timed out and failed over; one in a single
            // piece cannot. So back-ends are asked to stream even when the caller waits for the end, as long
            // as there is anything to be learnt from it.
            stream: Some(!options.whole),
            ..Generation::default()
        },
        response_format: module.manifest.runtime.structured_output.then(format),
        ..ChatRequest::default()
    };
    let mut request = Request::chat(options.request_id.clone(), chat);
    request.requirements.preferred_features = preferred(module);
    request.routing.backend.clone_from(&options.backend);
    request
}

/// The abilities that a module would rather have, in the words of routing.
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

/// The rendered prompt, and the input behind it when the template does not show it.
fn user_message(
    module: &Module,
    input: &Map<String, Value>,
    results: &Results,
    media: Vec<Media>,
) -> Message {
    let prompt = prompt::render_with(module, input, results);
    let shows_apart = !prompt.shows_input && !input.is_empty();
    // They are large and live as long as the run: no room for more than there are.
    let mut parts: Vec<Part> =
        Vec::with_capacity(prompt.pieces.len() + media.len() + usize::from(shows_apart));
    let mut media = media.into_iter().map(Part::from);
    for piece in prompt.pieces {
        match piece {
            PromptPiece::Text(text) => parts.push(Part::text(text)),
            // All of them stand at the first mark; none is sent twice.
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
