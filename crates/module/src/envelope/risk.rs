//! The risk derived from the data by the module's rule. It can only raise the stated risk, so a model cannot
//! understate the risk of its own changes. Under `explicit` the stated risk is kept.

use serde_json::{Map, Value};

use super::meta::Risk;
use super::repair_log::{Action, RepairLog};
use super::small_map::{member, member_mut};
use crate::manifest::RiskRule;

/// The highest risk among the items of the list that the rule names. `None` if there is no such list or the
/// rule is `explicit`; an empty list is low, an item without a known level counts as medium.
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

/// Raises `meta.risk` to the aggregate. Without a list nothing is raised.
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
