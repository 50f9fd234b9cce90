//! Tools for a back-end that calls none: they are described in the prompt, and an answer in the agreed form is
//! read as calls. Whether that may happen is the router's to say, which sends nothing here that the request does
//! not let go. Pure, and no dialect is known here: every kind of back-end is treated alike.

mod transcript;
mod prompt;
mod call_parser;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ir::adaptation::{Action, Ledger, Component};
use ir::event::{ADAPTED, Warning};
use ir::{ChatRequest, Error, Feature, Payload, Request, RunId, ToolChoice};

use self::prompt::ToolMode;
pub(super) use self::call_parser::CallParser;
use self::call_parser::CallRules;
use crate::route::Candidate;

/// What is asked in place of a request, and how the answer is read.
#[derive(Debug)]
pub(super) struct EmulatedRequest {
    pub(super) request: Arc<Request>,
    pub(super) reply: CallParser,
}

/// `None` where the request fits as it is. `run` tells the calls of this answer from those of all others;
/// `goes_on` says that the answer continues a text, which can be nothing else any more.
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
        let reason = "the back-end knows no tools; their calls and results are written as text";
        ledger.note("/payload/messages", Action::Replaced, reason);
    }
    let choice = chat.tool_choice.take().unwrap_or(ToolChoice::Auto);
    let many = chat.parallel_tool_calls.take() != Some(false);
    let tools = std::mem::take(&mut chat.tools);
    let offered = prompt::offered(&tools, &choice)?;
    if !tools.is_empty() {
        let reason = match offered.is_empty() {
            true => "the back-end calls no tools, and is to call none",
            false => "the back-end calls no tools; they are described in the prompt",
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
