//! Tool emulation: tools are described in the prompt, and a reply in the agreed form is parsed as calls.
//! Whether tools may be emulated is decided by the router. No IO; no dialect is known here, and all kinds of
//! back-end are treated alike.

mod call_parser;
mod prompt;
#[cfg(test)]
mod tests;
mod transcript;

use std::sync::Arc;

use ir::adaptation::{Action, Component, Ledger};
use ir::event::{ADAPTED, Warning};
use ir::{ChatRequest, Error, Feature, Payload, Request, RunId, ToolChoice};

pub(super) use self::call_parser::CallParser;
use self::call_parser::CallRules;
use self::prompt::ToolMode;
use crate::route::Candidate;

/// The request to send in place of the original, and the parser of its reply.
#[derive(Debug)]
pub(super) struct EmulatedRequest {
    pub(super) request: Arc<Request>,
    pub(super) reply: CallParser,
}

/// `None` if the request needs no emulation. `run` makes the call ids unique; `goes_on` marks a reply that
/// continues a text and so cannot be a call.
pub(super) fn emulate(
    request: &Request,
    candidate: &Candidate,
    run: RunId,
    goes_on: bool,
) -> Result<Option<EmulatedRequest>, Error> {
    let speaks_of_tools = request.as_chat().is_some_and(ChatRequest::uses_tools);
    if candidate.features.contains(&Feature::Tools) || !speaks_of_tools {
        return Ok(None);
    }
    let mut request = request.clone();
    let Payload::Chat(chat) = &mut request.payload else {
        return Ok(None);
    };
    let mut ledger = Ledger::new(Component::Adapter);
    if transcript::write_out(&mut chat.messages) {
        let reason = "the back-end does not support tools; calls and results are sent as text";
        ledger.note("/payload/messages", Action::Replaced, reason);
    }
    let choice = chat.tool_choice.take().unwrap_or(ToolChoice::Auto);
    let many = chat.parallel_tool_calls.take() != Some(false);
    let tools = std::mem::take(&mut chat.tools);
    let offered = prompt::offered(&tools, &choice)?;
    if !tools.is_empty() {
        let reason = match offered.is_empty() {
            true => "the back-end does not support tools, and no call is allowed",
            false => "the back-end does not support tools; they are described in the prompt",
        };
        ledger.note("/payload/tools", Action::Replaced, reason);
    }
    let manner = ToolMode {
        many,
        must: matches!(choice, ToolChoice::Required | ToolChoice::Tool(_)) && !offered.is_empty(),
        held_to_schema: candidate.features.contains(&Feature::JsonSchema),
    };
    if !offered.is_empty() {
        prompt::describe(chat, &offered, manner, &mut ledger);
    }
    let rule = CallRules {
        names: offered.iter().map(|tool| tool.name.clone()).collect(),
        many,
        must: manner.must && !goes_on,
        looks: !offered.is_empty() && !goes_on,
        run,
    };
    let notices = ledger
        .losses()
        .map(|loss| Warning::new(ADAPTED, format!("{}: {}", loss.pointer, loss.reason)));
    let reply = CallParser::new(rule, notices.collect());
    Ok(Some(EmulatedRequest {
        request: Arc::new(request),
        reply,
    }))
}
