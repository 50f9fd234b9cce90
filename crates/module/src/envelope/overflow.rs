//! Insights beyond the schema: how many a module takes, and that each says where it belongs. Too many is
//! E3004. An insight without its mapping is a matter of shape, so it is E3001, and it stays one even when
//! the module does not demand mappings: the published envelope always does. What a module can waive is
//! that the mapping says something.

use serde_json::{Map, Value};

use super::small_map::member;
use super::structure::{ShapeViolation, check_extensions};
use crate::code::Code;
use crate::limits;
use crate::module::Module;

/// The smallest of all limits in force; a module that has overflow switched off takes none.
pub(super) fn insights_max(module: &Module) -> u64 {
    let overflow = &module.manifest.overflow;
    if !overflow.enabled {
        return 0;
    }
    let stated = module.contract.insights_max().unwrap_or(limits::INSIGHTS_MAX);
    overflow.max_items.min(stated).min(limits::INSIGHTS_MAX)
}

pub(super) fn check_overflow(module: &Module, data: &Map<String, Value>, found: &mut Vec<ShapeViolation>) {
    let Some(extensions) = member(data, "extensions") else {
        return;
    };
    let before = found.len();
    check_extensions(data, found);
    let Some(Value::Array(insights)) = extensions.get("insights") else {
        return;
    };
    let max = insights_max(module);
    if insights.len() as u64 > max {
        // The general bound says the same with a worse code.
        let mut kept = found.split_off(before);
        kept.retain(|violation| violation.keyword != "maxItems");
        found.append(&mut kept);
        let message = match (insights.len(), max) {
            (1, 0) => String::from("holds an insight, but the module takes none"),
            (count, 0) => format!("holds {count} insights, but the module takes none"),
            (count, 1) => format!("holds {count} insights, at most one is allowed"),
            (count, max) => format!("holds {count} insights, at most {max} are allowed"),
        };
        let mut violation = ShapeViolation::new("/data/extensions/insights", "maxItems", message);
        violation.code = Code::E3004;
        found.push(violation);
    }
    if module.manifest.overflow.require_suggested_mapping {
        for (index, insight) in insights.iter().enumerate() {
            let mapping = insight.get("suggested_mapping").and_then(Value::as_str);
            if mapping.is_some_and(|mapping| mapping.trim().is_empty()) {
                let pointer = format!("/data/extensions/insights/{index}/suggested_mapping");
                let message = "must say where the insight belongs";
                found.push(ShapeViolation::new(pointer, "minLength", message));
            }
        }
    }
}
