//! The modules visible to one caller: allowed by its credentials and invocable from outside, under their tool
//! names. Other modules do not exist for this caller.

use std::sync::Arc;

use engine::Modules;
use module::Module;
use rmcp::ErrorData;
use rmcp::model::PaginatedRequestParams;
use serde_json::{Value, json};

use super::names::ToolNames;
use crate::limits;
use crate::response::ApiError;
use crate::route::{describe, summary, unknown_module};
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;

#[derive(Debug)]
pub(super) struct VisibleModules {
    pub(super) gateway: Gateway,
    pub(super) client: ClientStreams,
    /// All modules: a module may call others that its caller may not.
    pub(super) modules: Arc<Modules>,
    pub(super) names: ToolNames,
}

impl VisibleModules {
    pub(super) fn new(gateway: Gateway, client: ClientStreams) -> Self {
        let modules = gateway.engine().modules().clone();
        let allowed = &client.caller.modules;
        let seen = modules.iter().filter(|(name, module)| {
            let invocation = &module.manifest.invocation;
            // MCP callers are agents that start runs like users.
            invocation.user_invocable && invocation.agent_invocable && allowed.allows(name)
        });
        let names = ToolNames::of(seen.map(|(name, _)| name));
        Self {
            gateway,
            client,
            modules,
            names,
        }
    }

    /// The module of a tool name.
    pub(super) fn by_tool(&self, tool: &str) -> Option<&Arc<Module>> {
        self.modules.get(self.names.module(tool)?)
    }

    /// A module by name.
    pub(super) fn find(&self, name: &str) -> Result<&Arc<Module>, ApiError> {
        let seen = self.names.tool(name).and_then(|_| self.modules.get(name));
        seen.ok_or_else(|| unknown_module(name, self.names.iter().map(|(_, name)| name)))
    }

    /// Tools with their modules, sorted.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str, &Arc<Module>)> {
        let found = |(tool, name)| Some((tool, name, self.modules.get(name)?));
        self.names.iter().filter_map(found)
    }

    /// The list as a document, for hosts that read resources.
    pub(super) fn listing(&self) -> Value {
        let modules = self.iter().map(|(tool, name, module)| {
            let mut one = summary(name, module);
            one["tool"] = Value::from(tool);
            one
        });
        json!({"modules": modules.collect::<Vec<_>>()})
    }

    /// A module as a document.
    pub(super) fn description(&self, name: &str) -> Result<Value, ApiError> {
        let module = self.find(name)?;
        let mut whole = describe(name, module);
        whole["tool"] = json!(self.names.tool(name));
        Ok(whole)
    }
}

/// One page of a list and the next cursor. A cursor is the number of preceding items; changes of the list are
/// announced separately.
pub(super) fn page<T>(
    items: Vec<T>,
    request: Option<PaginatedRequestParams>,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let start = match request.and_then(|request| request.cursor) {
        None => 0,
        Some(cursor) => cursor
            .parse::<usize>()
            .map_err(|_| ErrorData::invalid_params("the cursor is invalid", None))?,
    };
    let end = start.saturating_add(limits::MCP_PAGE_MAX);
    let next = (items.len() > end).then(|| end.to_string());
    let page = items.into_iter().skip(start).take(limits::MCP_PAGE_MAX);
    Ok((page.collect(), next))
}
