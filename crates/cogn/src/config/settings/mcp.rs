//! `[mcp]`: what MCP hosts may do with the modules.

use serde::Deserialize;

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpSettings {
    /// A person is asked before a module runs that may act on the world.
    pub(crate) confirm: bool,
}
