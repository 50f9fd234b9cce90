use module::envelope::Risk;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{GateFailure, GateRule};

fn rule() -> GateRule {
    GateRule {
        min_confidence: Some(0.7),
        max_risk: Some(Risk::Low),
        ..GateRule::default()
    }
}

#[test]
fn unreadable_envelopes_do_not_pass() {
    for envelope in [
        Value::Null,
        json!({}),
        json!({"ok": "true", "meta": {"confidence": 1, "risk": "none"}}),
        json!({"ok": true}),
        json!({"ok": true, "meta": {"confidence": "1", "risk": "none"}}),
        json!({"ok": true, "meta": {"confidence": 1, "risk": {"custom": "odd"}}}),
        json!({"ok": false, "meta": {"confidence": 1, "risk": "none"}, "error": {"code": "E2004"}}),
    ] {
        assert!(!rule().failures(&envelope).is_empty(), "{envelope}");
    }
    let good = json!({"ok": true, "meta": {"confidence": 0.7, "risk": "low"}});
    assert_eq!(rule().failures(&good), []);
}

proptest! {
    #[test]
    fn stricter_rule_passes_no_more(confidence in 0.0..=1.0f64, low in 0.0..=1.0f64, more in 0.0..=1.0f64) {
        let strict = GateRule { min_confidence: Some(low.max(more)), ..GateRule::default() };
        let loose = GateRule { min_confidence: Some(low.min(more)), ..GateRule::default() };
        let passes = |rule: &GateRule| rule.evaluate(Some(confidence), None).is_empty();
        prop_assert!(!passes(&strict) || passes(&loose));
    }
}

#[test]
fn failures_name_actual_and_limit() {
    let found = rule().evaluate(Some(0.2), Some(Risk::High));
    assert_eq!(
        found,
        [
            GateFailure::Confidence {
                actual: Some(0.2),
                min: 0.7
            },
            GateFailure::Risk {
                actual: Some(Risk::High),
                max: Risk::Low
            }
        ]
    );
    let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["confidence 0.2 is below 0.7", "risk high is above low"]);
}
