//! The requirements of a tier on an answer that is otherwise valid. Exec answers are applied without review,
//! so they require high confidence and low risk; a decision with low confidence gets a warning; exploration
//! has no requirements. The rules apply only to modules that declare their tier.

use serde_json::{Value, json};

use super::error::ErrorBody;
use super::meta::{Meta, Risk};
use crate::code::Code;
use crate::manifest::{Manifest, Tier};

/// The result of the tier rules.
#[derive(Debug)]
pub(super) enum TierVerdict {
    Pass,
    Warn(Value),
    Refuse(Box<ErrorBody>),
}

pub(super) fn check_gate(manifest: &Manifest, meta: &Meta) -> TierVerdict {
    if !manifest.tier_declared {
        return TierVerdict::Pass;
    }
    let threshold = manifest.tier.confidence_min();
    let unsure = threshold.filter(|threshold| meta.confidence < *threshold);
    match (manifest.tier, unsure) {
        (Tier::Exec, Some(threshold)) => {
            TierVerdict::Refuse(Box::new(unsure_error(meta.confidence, threshold)))
        }
        (Tier::Exec, None) if meta.risk_level() > Risk::Low => {
            TierVerdict::Refuse(Box::new(risky_error(meta)))
        }
        (Tier::Decision, Some(threshold)) => TierVerdict::Warn(json!({
            "code": Code::W2001.as_str(),
            "message": format!("meta.confidence {} is below {threshold}: a person should review this decision", meta.confidence),
            "threshold": threshold,
            "actual": meta.confidence,
        })),
        _ => TierVerdict::Pass,
    }
}

fn unsure_error(actual: f64, threshold: f64) -> ErrorBody {
    let message = format!("meta.confidence {actual} is below {threshold}, the minimum of tier exec");
    ErrorBody::new(Code::E3001, message)
        .suggest(format!(
            "do not act on partial_data; raise meta.confidence to at least {threshold} by giving more context \
             or using a stronger back-end, or let a person decide"
        ))
        .detail("reason", "low_confidence")
        .detail("related_code", Code::E2001.as_str())
        .detail("threshold", threshold)
        .detail("actual", actual)
}

fn risky_error(meta: &Meta) -> ErrorBody {
    let risk = meta.risk_level();
    let message = format!("meta.risk is {risk}; tier exec allows only none or low");
    ErrorBody::new(Code::E3006, message)
        .suggest("do not act on partial_data; have a person decide, or move the module to tier decision")
        .detail("reason", "risk_too_high")
        .detail("allowed", json!(["none", "low"]))
        .detail("actual", risk.as_str())
}
