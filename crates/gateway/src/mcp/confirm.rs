//! Confirmation by a person before a module with side effects runs. The caller is a model, so its host is
//! asked to elicit the confirmation. A host without elicitation is refused.

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

/// Key of the elicitation and of its field.
const KEY: &str = "confirm";

/// Policies that allow side effects.
const SIDE_EFFECT_POLICIES: [&str; 3] = ["side_effects", "filesystem_write", "code_execution"];

/// The allowed side effects of a module, including those of modules that it calls.
pub(super) fn side_effects(module: &Arc<Module>, modules: &Modules) -> Vec<&'static str> {
    let graph = build(module, &|name| modules.get(name).cloned());
    let allowed = |policy: &&str| {
        let mut all = graph.nodes.values();
        all.any(|node| node.module.manifest.policies.access(policy) == Access::Allow)
    };
    SIDE_EFFECT_POLICIES.into_iter().filter(allowed).collect()
}

/// Result of a confirmation request.
#[derive(Debug)]
pub(super) enum Confirmation {
    Approved,
    Declined(ApiError),
    /// The host repeats the call with the answer.
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
        let by_retry =
            version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        if by_retry {
            let answers = request.input_responses.as_ref();
            if let Some(answer) = answers.and_then(|answers| answers.get(KEY)) {
                let about_this = request.request_state.as_deref() == Some(self.fingerprint().as_str());
                let answer = serde_json::from_value(answer.clone()).ok();
                return if about_this {
                    confirmation(answer)
                } else {
                    declined("other_call")
                };
            }
        }
        if !can_elicit(context) {
            return declined("cannot_ask");
        }
        if by_retry {
            let request = InputRequest::Elicitation(ElicitRequest::new(self.form()));
            let requests = BTreeMap::from([(String::from(KEY), request)]);
            return Confirmation::Pending(InputRequiredResult::new(Some(requests), Some(self.fingerprint())));
        }
        let answer = context
            .peer
            .create_elicitation_with_timeout(self.form(), Some(limits::MCP_CONFIRM));
        tokio::select! {
            answer = answer => confirmation(answer.ok()),
            () = context.ct.cancelled() => declined("cancelled"),
        }
    }

    fn form(&self) -> ElicitRequestParams {
        let schema = ElicitationSchema::builder().required_bool_property(KEY, |field| {
            field
                .title("Run it")
                .description("Allow the module to run with this input.")
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
            "The module `{}` may have side effects ({}). Its input: {shown}",
            self.module,
            self.powers.join(", ")
        )
    }

    /// Binds an answer to its request. The host could forge the answer as well, so this guards only against
    /// mistakes and needs no key.
    fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for part in [self.module, &self.input.to_string()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        hex::encode(hash.finalize())
    }
}

/// A host without a declared mode supports forms: originally the only mode.
fn can_elicit(context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities();
    let elicits = capabilities.and_then(|capabilities| capabilities.elicitation);
    elicits.is_some_and(|elicits| elicits.form.is_some() || elicits.url.is_none())
}

fn confirmation(answer: Option<ElicitResult>) -> Confirmation {
    let Some(answer) = answer else {
        return declined("no_answer");
    };
    let content = answer.content.as_ref();
    let yes = content.and_then(|content| content.get(KEY)) == Some(&Value::Bool(true));
    match (answer.action, yes) {
        (ElicitationAction::Accept, true) => Confirmation::Approved,
        _ => declined("declined"),
    }
}

fn declined(reason: &str) -> Confirmation {
    let (message, suggestion) = match reason {
        "cannot_ask" => (
            "the module may have side effects, and this host does not support confirmation",
            "use a host that supports elicitation, or set mcp.confirm = false if the host confirms calls itself",
        ),
        "other_call" => (
            "the confirmation belongs to another call",
            "request confirmation for this call",
        ),
        "declined" => ("the user declined the call", "ask the user what to change"),
        _ => (
            "no confirmation was received",
            "call again when a user can confirm",
        ),
    };
    let body = ErrorBody::new(Code::E4007, message)
        .suggest(suggestion)
        .detail("confirmation", reason);
    Confirmation::Declined(ApiError::new(body))
}
