//! `[mcp]`: settings of the MCP server.

use serde::Deserialize;

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpSettings {
    /// Require confirmation by a person before a run of a module with side effects.
    pub(crate) confirm: bool,
}
