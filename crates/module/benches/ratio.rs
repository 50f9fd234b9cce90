//! Ratio benchmarks with limits: the cost of the envelope check and the stream parser relative to
//! `serde_json::from_slice::<Value>` on the same bytes in the same run. Prints a JSON line per figure for
//! `cargo x bench`; as a test it runs once over small inputs.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark reads its arguments and the clock"
)]

#[path = "../../../bench/bench_main.rs"]
mod bench_main;
#[path = "../../../bench/figure.rs"]
mod figure;

use std::hint::black_box;

use module::envelope::{CheckOptions, check_reply};
use module::stream::json::{JsonEvent, JsonParser};
use module::{FileMap, Module, load};
use serde_json::{Value, json};

const MANIFEST: &str = include_str!("../../../examples/modules/code-simplifier/module.yaml");
const PROMPT: &str = include_str!("../../../examples/modules/code-simplifier/prompt.md");
const SCHEMA: &str = include_str!("../../../examples/modules/code-simplifier/schema.json");

fn main() {
    bench_main::main("ratio", measure_all);
}

fn measure_all() {
    let module = code_simplifier();
    for (name, changes) in [("1 KiB", 4), ("16 KiB", 90), ("256 KiB", 1500)] {
        let reply = reply(changes);
        assert!(
            check_reply(&module, &reply, &CheckOptions::default())
                .envelope
                .is_ok()
        );
        let machine = || {
            black_box(check_reply(&module, black_box(&reply), &CheckOptions::default()));
        };
        compare(&format!("envelope machine, {name} reply"), 2.0, &reply, machine);
    }
    let reply = reply(1500);
    for (name, size, limit) in [("4 KiB pieces", 4096, 2.0), ("8-byte pieces", 8, 4.0)] {
        compare(&format!("stream parser, {name}"), limit, &reply, || {
            parse(&reply, size);
        });
    }
}

/// Measures relative to parsing the same bytes into a tree.
fn compare(name: &str, limit: f64, bytes: &[u8], measured: impl Fn()) {
    let baseline = || {
        black_box(serde_json::from_slice::<Value>(black_box(bytes)).is_ok());
    };
    figure::figure(name, "`from_slice::<Value>`", limit, measured, baseline);
}

fn parse(bytes: &[u8], size: usize) {
    let mut parser = JsonParser::new();
    let mut events = 0u64;
    let mut count = |event: JsonEvent<'_>| {
        black_box(&event);
        events += 1;
    };
    let result = bytes
        .chunks(size)
        .try_for_each(|piece| parser.push(piece, &mut count));
    assert!(result.is_ok() && parser.finish(&mut count).is_ok());
    black_box(events);
}

#[expect(
    clippy::expect_used,
    reason = "without the example there is nothing to measure"
)]
fn code_simplifier() -> Module {
    let files = [
        ("module.yaml", MANIFEST),
        ("prompt.md", PROMPT),
        ("schema.json", SCHEMA),
    ];
    load(&FileMap::from_iter(files))
        .module
        .expect("the example loads")
}

/// An answer with code, prose and a list of changes: text with escapes, small objects, few numbers.
#[expect(clippy::expect_used, reason = "a JSON value always serialises")]
fn reply(changes: usize) -> Vec<u8> {
    let change = |number: usize| {
        json!({
            "type": if number.is_multiple_of(2) { "remove_redundancy" } else { "simplify_logic" },
            "risk": "low",
            "description": format!("Line {number}: the \"else\" after a return is not needed.\n"),
        })
    };
    let list: Vec<Value> = (0..changes).map(change).collect();
    let reply = json!({
        "ok": true,
        "meta": {"confidence": 0.93, "risk": "low", "explain": "Two branches became one."},
        "data": {
            "simplified_code": "def f(x):\n    return x\n".repeat(changes.div_ceil(8)),
            "changes": list,
            "behavior_equivalence": true,
            "rationale": "Each change keeps the result: the branch is decided by the return before it. ".repeat(changes.div_ceil(4)),
        }
    });
    serde_json::to_vec_pretty(&reply).expect("it serialises")
}
