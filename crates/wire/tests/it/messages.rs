//! Messages in the dialects with standalone messages: every example of the documents, and the laws between
//! them.

use ir::media::ForeignIds;
use ir::{Component, Dialect, Ledger, Message, PartBody, ToolOutcome};
use proptest::prelude::*;
use serde_json::{Value, json};
use wire::media::{ConversionContext, ConversionError, Locality, RequiredAction};
use wire::messages::{PairingError, check_pairs, complete_pairs, convert, decode};

use crate::fixtures::{cases, disturb, disturbances};

fn here(aliases: &ForeignIds) -> ConversionContext<'_> {
    ConversionContext {
        place: Locality::Local,
        aliases,
    }
}

fn try_turn(from: Dialect, to: Dialect, value: &Value) -> Result<(Value, Ledger), ConversionError> {
    let mut ledger = Ledger::new(Component::Adapter);
    let aliases = ForeignIds::default();
    let value = convert(from, to, value.clone(), &here(&aliases), &mut ledger)?;
    Ok((value, ledger))
}

fn turn(from: Dialect, to: Dialect, value: &Value) -> Value {
    try_turn(from, to, value).unwrap().0
}

fn read(dialect: Dialect, value: Value) -> Vec<Message> {
    decode(dialect, value, &here(&ForeignIds::default()))
        .unwrap()
        .messages
}

const ID: &str = "018f6e5c-0000-7000-8000-00000000abcd";

fn metadata() -> Value {
    json!({
        "token_usage": {"prompt_tokens": 500, "completion_tokens": 150, "total_cost_usd": 0.002},
        "latency_ms": {"ttft": 400, "total_time": 1200},
        "model_version": "gpt-4-vision-preview-2024-04-09",
        "system_fingerprint": "fp_12345",
        "session_id": "sess_user_999",
        "trace_id": "trace_uuid_v4",
        "safety_check": {"flagged": false, "categories": []}
    })
}

fn harmony() -> Vec<Value> {
    let arguments =
        r#"{"keywords": ["Transformer architecture", "Attention mechanism"], "year_filter": 2023}"#;
    let calling = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_890xyz", "type": "function",
        "function": {"name": "search_knowledge_base", "arguments": arguments}}]});
    let result = json!({"role": "tool", "tool_call_id": "call_890xyz", "name": "search_knowledge_base",
        "content": "{\"status\": \"success\", \"results\": [{\"title\": \"Attention is All You Need\", \"snippet\": \"...\"}]}"});
    vec![
        json!({"id": "msg_123456789", "role": "user", "name": "ResearchAgent_01", "created_at": 1_715_000_000,
            "content": [{"type": "text", "text": "根据用户上传的图片，我测到了明显的裂痕。", "index": 0}], "metadata": metadata()}),
        json!([calling, result]),
        calling,
        result,
        json!({"role": "assistant", "content": "我将为您查询天气..."}),
        json!({"role": "tool", "tool_call_id": "call_890xyz",
            "content": "{\"status\": \"error\", \"error_type\": \"InvalidDateRange\", \"message\": \"Please try an earlier year.\"}"}),
        json!({"role": "tool", "tool_call_id": "call_render_chart", "content": [
            {"type": "text", "text": "{\"status\": \"rendered_successfully\"}"},
            {"type": "image_url", "image_url": {"url": "https://.../chart_temp.png"}}]}),
        json!({"role": "user", "content": [
            {"type": "text", "text": "请分析以下监控画面序列（10s-15s），判断是否存在未授权人员进入禁区。"},
            {"type": "image_url", "image_url": {"url": "https://.../frame_10s.jpg", "detail": "low"},
                "video_metadata": {"timestamp_sec": 10.0}},
            {"type": "image_url", "image_url": {"url": "https://.../frame_15s.jpg", "detail": "low"},
                "video_metadata": {"timestamp_sec": 15.0}}]}),
        json!({"role": "tool", "tool_call_id": "call_delete_db_123",
            "content": "{\"status\": \"halted\", \"reason\": \"human_confirmation_required\", \"message\": \"You MUST ask.\"}"}),
        json!({"role": "user", "content": [
            {"type": "text", "text": "listen"},
            {"type": "input_audio", "input_audio": {"data": "base64_string...", "format": "wav", "sample_rate": 24000}},
            {"type": "image_url", "image_url": {"url": format!("media:///{ID}")}}]}),
    ]
}

pub(crate) fn examples() -> Vec<(Dialect, Value)> {
    let blocks = json!([{"type": "text", "text": "look", "text_fallback": "look"},
        {"type": "image", "media_id": ID, "text_fallback": "a red car"}]);
    let content_block = [
        json!({"role": "user", "content": "..."}),
        json!({"role": "user", "content": {"text": "..."}}),
        json!({"role": "user", "content": {"blocks": blocks, "text_fallback": "look\na red car"}}),
        json!({"role": "user", "content": {"blocks": blocks, "text_fallback": "..."}}),
        json!({"role": "assistant", "content": blocks, "id": "m1"}),
        json!({"blocks": blocks, "text_fallback": "..."}),
        blocks,
        json!([{"role": "user", "content": {"blocks": []}}]),
    ];
    let canonical = [
        json!([{"role": "user", "content_parts": [{"type": "text", "text": "描述这张图片"}, {"type": "image",
            "image": {"kind": "sms_file", "uri": "sms+file://01J...", "mime": "image/jpeg"}}]}]),
        json!([{"role": "user", "content": "plain"}, {"role": "assistant", "content": null}]),
    ];
    let cognitive = [
        json!({"prompt": "描述这张图片并识别其中的文字", "images": [{"type": "url", "url": "https://example.com/receipt.jpg"}]}),
        json!({"prompt": "See $MEDIA_INPUTS and tell.", "language": "de", "images": [{"type": "file", "path": "a.png"}],
            "audio": [{"type": "base64", "media_type": "audio/wav", "data": "UklGRg=="}]}),
        json!({"images": [{"type": "upload_ref", "upload_id": "upl_abc123", "media_type": "image/png"}]}),
    ];
    let all = [
        (Dialect::HarmonySchema, harmony()),
        (Dialect::ContentBlock, content_block.to_vec()),
        (Dialect::MediaRef, canonical.to_vec()),
        (Dialect::Canonical, canonical.to_vec()),
        (Dialect::Cognitive, cognitive.to_vec()),
    ];
    all.into_iter()
        .flat_map(|(dialect, list)| list.into_iter().map(move |value| (dialect, value)))
        .collect()
}

#[test]
fn examples_roundtrip() {
    for (dialect, value) in examples() {
        let (again, ledger) = try_turn(dialect, dialect, &value).unwrap();
        assert_eq!(again, value, "{dialect}");
        assert_eq!(ledger.entries(), [], "{dialect}");
    }
}

/// Canonical messages carry everything that the Harmony Schema has.
#[test]
fn canonical_form_preserves_harmony_messages() {
    for value in harmony() {
        let (canonical, ledger) = try_turn(Dialect::HarmonySchema, Dialect::Canonical, &value).unwrap();
        assert_eq!(ledger.losses().count(), 0);
        assert_eq!(
            turn(Dialect::Canonical, Dialect::HarmonySchema, &canonical),
            value
        );
    }
}

#[test]
fn encodes_and_decodes_tool_outcomes() {
    let outcome = |value: &Value| {
        let messages = read(Dialect::HarmonySchema, value.clone());
        match &messages[0].parts[0].body {
            PartBody::ToolResult(result) => result.outcome,
            other => panic!("{other:?}"),
        }
    };
    let outcomes: Vec<ToolOutcome> = harmony()
        .iter()
        .filter(|value| value["role"] == "tool")
        .map(outcome)
        .collect();
    let expected = [
        ToolOutcome::Success,
        ToolOutcome::Error,
        ToolOutcome::Success,
        ToolOutcome::Halted,
    ];
    assert_eq!(outcomes, expected);
    let canonical = json!({"role": "user", "content_parts": [
        {"type": "tool_result", "call_id": "c1", "outcome": "error", "content": [{"type": "text", "text": "boom"}]},
        {"type": "text", "text": "and now?"}]});
    let written = turn(Dialect::Canonical, Dialect::HarmonySchema, &canonical);
    assert_eq!(
        written,
        json!([
            {"role": "tool", "tool_call_id": "c1", "content": "{\"status\":\"error\",\"message\":\"boom\"}"},
            {"role": "user", "content": [{"type": "text", "text": "and now?"}]}
        ])
    );
}

#[test]
fn converts_between_blocks_and_parts() {
    let value = json!({"role": "user", "content": [{"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": format!("media:///{ID}"), "detail": "low"}}]});
    let (blocks, ledger) = try_turn(Dialect::HarmonySchema, Dialect::ContentBlock, &value).unwrap();
    assert_eq!(ledger.losses().count(), 0);
    insta::assert_json_snapshot!(blocks);
    assert_eq!(
        turn(Dialect::ContentBlock, Dialect::HarmonySchema, &blocks),
        value
    );
    let inline = json!([{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}]);
    let refused = try_turn(Dialect::HarmonySchema, Dialect::ContentBlock, &inline).unwrap_err();
    assert!(matches!(
        refused,
        ConversionError::NeedsStore {
            need: RequiredAction::Put,
            ..
        }
    ));
    assert_eq!(refused.pointer(), "/0/content_parts/0");
}

#[test]
fn converts_module_input_to_user_message() {
    let input = json!({"prompt": "See $MEDIA_INPUTS and tell.", "images": [
        {"type": "url", "url": "https://example.com/a.jpg"}]});
    let written = turn(Dialect::Cognitive, Dialect::HarmonySchema, &input);
    assert_eq!(
        written,
        json!({"role": "user", "content": [
            {"type": "text", "text": "See "},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.jpg"}},
            {"type": "text", "text": " and tell."}]})
    );
    assert_eq!(turn(Dialect::HarmonySchema, Dialect::Cognitive, &written), input);
    let history = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]);
    assert!(matches!(
        try_turn(Dialect::HarmonySchema, Dialect::Cognitive, &history),
        Err(ConversionError::Unsupported { .. })
    ));
}

#[test]
fn rejects_storage_locations_and_versions_in_content() {
    for content in [
        json!({"blocks": [], "content_version": 1}),
        json!({"text": "t", "schema_version": 1}),
        json!([{"type": "text", "text": "t", "presigned_url": "u"}]),
    ] {
        let message = json!({"role": "user", "content": content});
        assert!(
            try_turn(Dialect::ContentBlock, Dialect::ContentBlock, &message).is_err(),
            "{message}"
        );
    }
}

fn call(ids: &[&str]) -> Value {
    let calls: Vec<Value> = ids
        .iter()
        .map(|id| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}))
        .collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "{}"})
}

#[test]
fn checks_pairing_of_calls_and_results() {
    let found = |list: &[Value]| check_pairs(&read(Dialect::HarmonySchema, json!(list)));
    let id = |id: &str| String::from(id);
    assert_eq!(found(&[call(&["a", "b"]), result("a"), result("b")]), []);
    assert_eq!(
        found(&[call(&["a", "b"]), result("b"), result("a")]),
        [PairingError::OutOfOrder {
            message: 2,
            call_id: id("a")
        }]
    );
    assert_eq!(
        found(&[call(&["a"]), json!({"role": "user", "content": "?"}), result("a")]),
        [
            PairingError::MissingResult {
                message: 0,
                call_id: id("a")
            },
            PairingError::OrphanResult {
                message: 2,
                call_id: id("a")
            },
        ]
    );
    assert_eq!(
        found(&[call(&["a", "a"]), result("a"), result("a")]),
        [
            PairingError::DoubleCall {
                message: 0,
                call_id: id("a")
            },
            PairingError::DoubleResult {
                message: 2,
                call_id: id("a")
            },
        ]
    );
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn mutated_examples_roundtrip(changes in disturbances(), pick: prop::sample::Index) {
        let examples: Vec<_> = examples()
            .into_iter()
            .filter(|(dialect, _)| !matches!(dialect, Dialect::Canonical | Dialect::MediaRef))
            .collect();
        let (dialect, value) = pick.get(&examples);
        let mut value = value.clone();
        for change in &changes {
            disturb(&mut value, change);
        }
        let Ok((again, ledger)) = try_turn(*dialect, *dialect, &value) else {
            return Err(TestCaseError::reject("not a message of the dialect"));
        };
        prop_assert_eq!(again, value);
        prop_assert_eq!(ledger.losses().count(), 0);
    }

    #[test]
    fn no_silent_loss(
        at: usize,
        pick: prop::sample::Index,
        target in prop::sample::select(wire::messages::DIALECTS),
    ) {
        let examples = examples();
        let (dialect, value) = pick.get(&examples);
        let mut value = value.clone();
        disturb(&mut value, &(at, 2, json!("canary!")));
        // A list as such cannot get a new field.
        prop_assume!(value.to_string().contains("canary!"));
        let Ok((written, ledger)) = try_turn(*dialect, target, &value) else {
            return Err(TestCaseError::reject("not a message of the dialect"));
        };
        let carried = written.to_string().contains("canary!");
        prop_assert!(carried || ledger.losses().next().is_some(), "{} {}", value, written);
    }

    /// For any missing results, completion restores valid pairs.
    #[test]
    fn completes_missing_results(shape in prop::collection::vec((1_usize..4, any::<u8>()), 1..5)) {
        let mut list = Vec::new();
        for (turn, (calls, there)) in shape.iter().enumerate() {
            let ids: Vec<String> = (0..*calls).map(|at| format!("{turn}-{at}")).collect();
            list.push(call(&ids.iter().map(String::as_str).collect::<Vec<_>>()));
            for (at, id) in ids.iter().enumerate() {
                if there >> at & 1 == 1 {
                    list.push(result(id));
                }
            }
        }
        let mut messages = read(Dialect::HarmonySchema, json!(list));
        let missing = check_pairs(&messages).len();
        prop_assert_eq!(complete_pairs(&mut messages), missing);
        prop_assert_eq!(check_pairs(&messages), []);
        prop_assert_eq!(messages.len(), list.len() + missing);
    }
}
