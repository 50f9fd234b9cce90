//! Insights beyond the schema: their number and their mapping. Too many insights are E3004. A missing mapping
//! is a shape error, E3001, even if the module does not require mappings, since the published envelope does.
//! A module can only waive that the mapping is not empty.

use serde_json::{Map, Value};

use super::small_map::member;
use super::structure::{ShapeViolation, check_extensions};
use crate::code::Code;
use crate::limits;
use crate::module::Module;

/// The smallest limit that applies; 0 for a module with overflow disabled.
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
        // The general limit would report the same with a less specific code.
        let mut kept = found.split_off(before);
        kept.retain(|violation| violation.keyword != "maxItems");
        found.append(&mut kept);
        let message = match (insights.len(), max) {
            (1, 0) => String::from("contains an insight, but the module allows none"),
            (count, 0) => format!("contains {count} insights, but the module allows none"),
            (count, 1) => format!("contains {count} insights, at most one is allowed"),
            (count, max) => format!("contains {count} insights, at most {max} are allowed"),
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
                let message = "must state where the insight belongs";
                found.push(ShapeViolation::new(pointer, "minLength", message));
            }
        }
    }
}
