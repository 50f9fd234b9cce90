//! The preparation that precedes the machine.

use ir::event::FinishReason;

use super::{REPLY, Sim, plan};
use crate::run::Preface;
use crate::run::machine::MachineConfig;

#[test]
fn preparation_counts_towards_the_deadline() {
    let preface = Preface {
        took_ms: 299_000,
        ..Preface::default()
    };
    let mut late = Sim::new(
        1,
        MachineConfig {
            preface: preface.clone(),
            ..plan()
        },
    );
    late.pass(999);
    assert_eq!(late.finishes, []);
    late.pass(1);
    assert_eq!(late.code(), "E2011");
    let details = &late.assemble().envelope["error"]["details"];
    assert_eq!(
        details["allowed_ms"], 300_000,
        "the whole limit is reported, not the remainder"
    );
    let mut done = Sim::new(1, MachineConfig { preface, ..plan() });
    done.now_ms = 500;
    done.text(REPLY);
    done.finish(FinishReason::Stop);
    assert_eq!(done.assemble().envelope["meta"]["processing_time_ms"], 299_500);
}
