//! Tool names. Hosts accept up to 64 letters, digits, `_` and `-`. A module name that is valid is kept; any
//! other is mapped to a unique, stable name.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::builtin;
use crate::limits;

/// Hash characters in a mapped name.
const MARK_CHARS: usize = 8;

#[derive(Debug, Default)]
pub(super) struct ToolNames(BTreeMap<String, String>);

impl ToolNames {
    pub(super) fn of<'a>(modules: impl IntoIterator<Item = &'a str>) -> Self {
        let (fitting, others): (Vec<_>, Vec<_>) = modules.into_iter().partition(|name| fits(name));
        let mut tools: BTreeMap<String, String> = fitting
            .into_iter()
            .map(|name| (String::from(name), String::from(name)))
            .collect();
        for module in others {
            let mut tool = made_from(module, 0);
            let mut again = 0;
            while tools.contains_key(&tool) {
                again += 1;
                tool = made_from(module, again);
            }
            tools.insert(tool, String::from(module));
        }
        Self(tools)
    }

    /// The module of a tool.
    pub(super) fn module(&self, tool: &str) -> Option<&str> {
        self.0.get(tool).map(String::as_str)
    }

    /// The tool of a module.
    pub(super) fn tool(&self, module: &str) -> Option<&str> {
        let mut pairs = self.iter();
        pairs.find(|(_, name)| *name == module).map(|(tool, _)| tool)
    }

    /// Tools with their modules, sorted.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(tool, module)| (tool.as_str(), module.as_str()))
    }
}

fn fits(name: &str) -> bool {
    let length = name.chars().count();
    (1..=limits::MCP_NAME_CHARS_MAX).contains(&length)
        && name.chars().all(is_plain)
        && !builtin::is_reserved(name)
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '-'
}

fn made_from(module: &str, again: u32) -> String {
    let plain = |letter| if is_plain(letter) { letter } else { '_' };
    let room = limits::MCP_NAME_CHARS_MAX - MARK_CHARS - 1;
    let stem: String = module.chars().map(plain).take(room).collect();
    let digest = hex::encode(Sha256::digest(format!("{again}:{module}")));
    let mark = digest.get(..MARK_CHARS).unwrap_or(&digest);
    format!("{stem}_{mark}")
}
