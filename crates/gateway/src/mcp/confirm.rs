//! A person's word before a module runs that may act on the world. The one who calls here is a model; so
//! its host is asked to ask. A host that cannot ask is refused rather than trusted.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::Modules;
use module::compose::build;
use module::envelope::ErrorBody;
use module::manifest::Access;
use module::{Code, Module};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, ProtocolVersion,
};
use rmcp::service::RequestContext;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::limits;
use crate::response::ApiError;

/// The name of the question, and of the field that answers it.
const KEY: &str = "confirm";

/// Policies under which a module does more than answer.
const POWERS: [&str; 3] = ["side_effects", "filesystem_write", "code_execution"];

/// What a module may do to the world, those that it calls included.
pub(super) fn side_effects(module: &Arc<Module>, modules: &Modules) -> Vec<&'static str> {
    let graph = build(module, &|name| modules.get(name).cloned());
    let allowed = |power: &&str| {
        let mut all = graph.nodes.values();
        all.any(|node| node.module.manifest.policies.access(power) == Access::Allow)
    };
    POWERS.into_iter().filter(allowed).collect()
}

/// What came of asking.
#[derive(Debug)]
pub(super) enum Confirmation {
    Approved,
    Declined(ApiError),
    /// The host calls again, with the answer.
    Pending(InputRequiredResult),
}

#[derive(Debug)]
pub(super) struct ConfirmationRequest<'a> {
    pub(super) module: &'a str,
    pub(super) input: &'a Value,
    pub(super) powers: &'a [&'static str],
}

impl ConfirmationRequest<'_> {
    pub(super) async fn ask(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Confirmation {
        let version = context.protocol_version();
        let in_turns =
            version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        if in_turns {
            let answers = request.input_responses.as_ref();
            if let Some(answer) = answers.and_then(|answers| answers.get(KEY)) {
                let about_this = request.request_state.as_deref() == Some(self.print().as_str());
                let answer = serde_json::from_value(answer.clone()).ok();
                return if about_this {
                    word(answer)
                } else {
                    withheld("other_call")
                };
            }
        }
        if !can_ask(context) {
            return withheld("cannot_ask");
        }
        if in_turns {
            let request = InputRequest::Elicitation(ElicitRequest::new(self.form()));
            let requests = BTreeMap::from([(String::from(KEY), request)]);
            return Confirmation::Pending(InputRequiredResult::new(Some(requests), Some(self.print())));
        }
        let answer = context
            .peer
            .create_elicitation_with_timeout(self.form(), Some(limits::MCP_CONFIRM));
        tokio::select! {
            answer = answer => word(answer.ok()),
            () = context.ct.cancelled() => withheld("cancelled"),
        }
    }

    fn form(&self) -> ElicitRequestParams {
        let schema = ElicitationSchema::builder().required_bool_property(KEY, |field| {
            field
                .title("Run it")
                .description("Whether the module may run with this input.")
                .with_default(false)
        });
        ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.text(),
            requested_schema: schema.build_unchecked(),
        }
    }

    fn text(&self) -> String {
        let input = self.input.to_string();
        let mut shown: String = input.chars().take(limits::MCP_SHOWN_CHARS_MAX).collect();
        if shown.len() < input.len() {
            shown.push_str("... (cut)");
        }
        format!(
            "The module `{}` may act on the world ({}). Its input: {shown}",
            self.module,
            self.powers.join(", ")
        )
    }

    /// Ties an answer to its question. The host could lie about the answer as well, so this guards against
    /// mistakes only, and needs no key.
    fn print(&self) -> String {
        let mut hash = Sha256::new();
        for part in [self.module, &self.input.to_string()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        hex::encode(hash.finalize())
    }
}

/// A host that names no way of asking can show forms: that was the only way at first.
fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities();
    let elicits = capabilities.and_then(|capabilities| capabilities.elicitation);
    elicits.is_some_and(|elicits| elicits.form.is_some() || elicits.url.is_none())
}

fn word(answer: Option<ElicitResult>) -> Confirmation {
    let Some(answer) = answer else {
        return withheld("no_answer");
    };
    let content = answer.content.as_ref();
    let yes = content.and_then(|content| content.get(KEY)) == Some(&Value::Bool(true));
    match (answer.action, yes) {
        (ElicitationAction::Accept, true) => Confirmation::Approved,
        _ => withheld("declined"),
    }
}

fn withheld(reason: &str) -> Confirmation {
    let (message, suggestion) = match reason {
        "cannot_ask" => (
            "the module may act on the world, and this host cannot ask a person whether it may run",
            "use a host that supports elicitation, or set mcp.confirm = false where the host asks by itself",
        ),
        "other_call" => (
            "the confirmation was given to another call",
            "ask again for this call",
        ),
        "declined" => (
            "a person did not allow the module to run",
            "ask what should be different",
        ),
        _ => (
            "nobody said whether the module may run",
            "call again when somebody can answer",
        ),
    };
    let body = ErrorBody::new(Code::E4007, message)
        .suggest(suggestion)
        .detail("confirmation", reason);
    Confirmation::Declined(ApiError::new(body))
}
