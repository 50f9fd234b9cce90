//! The risk that follows from the data, by the module's rule. It may only raise what the model said:
//! a model that finds its own changes harmless does not outvote them. Under `explicit` its word stands.

use serde_json::{Map, Value};

use super::small_map::{member, member_mut};
use super::meta::Risk;
use super::repair_log::{Action, RepairLog};
use crate::manifest::RiskRule;

/// The highest risk among the items that the rule names. `None` when there is no such list or the rule
/// looks at none; a list without items is low, an item without a known level counts as medium.
pub(super) fn aggregate(rule: RiskRule, data: &Map<String, Value>) -> Option<Risk> {
    let field = match rule {
        RiskRule::MaxChangesRisk => "changes",
        RiskRule::MaxIssuesRisk => "issues",
        RiskRule::Explicit => return None,
    };
    let items = member(data, field)?.as_array()?;
    let level = |item: &Value| {
        item.get("risk")
            .and_then(Value::as_str)
            .and_then(Risk::guess)
            .unwrap_or(Risk::Medium)
    };
    Some(items.iter().map(level).max().unwrap_or(Risk::Low))
}

/// Raises `meta.risk` to the aggregate. A list that is absent says nothing, so it raises nothing.
pub(super) fn escalate(meta: &mut Map<String, Value>, aggregated: Option<Risk>, repairs: &mut RepairLog) {
    let (Some(aggregated), Some(Value::String(risk))) = (aggregated, member_mut(meta, "risk")) else {
        return;
    };
    if Risk::find(risk).is_some_and(|stated| stated < aggregated) {
        let before = std::mem::replace(risk, String::from(aggregated.as_str()));
        repairs.record(
            "/meta/risk",
            Action::Escalated,
            Some(Value::String(before)),
            Some(Value::from(aggregated.as_str())),
        );
    }
}
