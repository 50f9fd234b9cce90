use std::collections::VecDeque;

use ir::event::FinishReason;
use ir::{
    Block, ChatRequest, ChatResponse, Delta, Error, ErrorKind, Event, Feature, Fold, Message, Operation,
    Part, PartBody, Phase, Request, ResponseFormat, Role, RunId, ToolCall, ToolChoice, ToolResult, ToolSpec,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{EmulatedRequest, emulate};
use crate::route::Candidate;

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: String::from(name),
        description: Some(format!("tells the {name}")),
        parameters: Some(json!({"type": "object", "properties": {"city": {"type": "string"}}})),
        ..ToolSpec::default()
    }
}

fn chat() -> ChatRequest {
    let messages = vec![
        Message::text(Role::System, "Be kind."),
        Message::text(Role::User, "the weather"),
    ];
    ChatRequest {
        tools: vec![tool("weather"), tool("time")],
        ..ChatRequest::new("m", messages)
    }
}

fn prompted_by(chat: ChatRequest, features: &[Feature]) -> Result<Option<EmulatedRequest>, Error> {
    let mut candidate = Candidate::new("plain", "any", Operation::ChatCompletions);
    candidate.features.extend(features.iter().cloned());
    let request = Request::chat("r", chat);
    emulate(&request, &candidate, RunId::from_parts(1, 1), false)
}

fn prompted(chat: ChatRequest) -> EmulatedRequest {
    prompted_by(chat, &[]).unwrap().unwrap()
}

fn asked(prompted: &EmulatedRequest) -> &ChatRequest {
    prompted.request.as_chat().unwrap()
}

/// A reply split into these pieces.
fn answer(pieces: &[&str], reason: FinishReason) -> Vec<Event> {
    let mut events = vec![
        Event::Started {
            id: None,
            model: None,
            created: None,
        },
        Event::BlockStart {
            index: 0,
            block: Block::Text,
        },
    ];
    events.extend(pieces.iter().map(|piece| Event::text(0, *piece)));
    events.push(Event::BlockEnd { index: 0 });
    events.push(Event::Finish { reason });
    events
}

fn heard(mut prompted: EmulatedRequest, events: Vec<Event>) -> Vec<Event> {
    let mut out = VecDeque::new();
    for event in events {
        prompted.reply.push(event, &mut out);
    }
    out.into()
}

fn folded(chat: ChatRequest, events: Vec<Event>) -> ChatResponse {
    let mut fold = Fold::new();
    heard(prompted(chat), events)
        .into_iter()
        .for_each(|event| fold.push(event));
    fold.finish().unwrap()
}

fn said(chat: ChatRequest, text: &str) -> ChatResponse {
    folded(chat, answer(&[text], FinishReason::Stop))
}

const CALL: &str = r#"{"calls":[{"tool":"weather","arguments":{"city": "Bern"}}]}"#;

#[test]
fn no_emulation_with_native_tools_or_without_tools() {
    assert!(prompted_by(chat(), &[Feature::Tools]).unwrap().is_none());
    let mut without = chat();
    without.tools.clear();
    assert!(prompted_by(without, &[]).unwrap().is_none());
}

#[test]
fn prompt_describes_tools_and_call_form() {
    let prompted = prompted(chat());
    let chat = asked(&prompted);
    assert!(chat.tools.is_empty() && chat.tool_choice.is_none());
    assert_eq!(chat.messages.len(), 3);
    assert_eq!(chat.messages[0].plain_text(), Some("Be kind."));
    let text = chat.messages[1].plain_text().unwrap();
    assert_eq!(chat.messages[1].role, Role::System);
    for said in [
        r#"{"tool":"weather","description":"tells the weather","arguments":{"type":"object","properties":{"city":{"type":"string"}}}}"#,
        r#""tool":"time""#,
        r#"{"calls":[{"tool":"NAME","arguments":{}}]}"#,
    ] {
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn tool_choice_is_honoured() {
    let chosen = |choice: ToolChoice| ChatRequest {
        tool_choice: Some(choice),
        ..chat()
    };
    // None: the prompt does not mention tools, and no text is parsed as a call.
    let none = chosen(ToolChoice::None);
    assert_eq!(asked(&prompted(none.clone())).messages, chat().messages);
    assert_eq!(said(none, CALL).text(), CALL);
    // One tool: the others are not offered, and a call of one is text.
    let named = chosen(ToolChoice::Tool(String::from("time")));
    let text = asked(&prompted(named.clone())).messages[1].joined_text();
    assert!(text.contains("\"time\"") && !text.contains("\"weather\"") && text.contains("You must call"));
    let answer = said(named, CALL);
    assert_eq!(answer.text(), CALL);
    let misses = |answer: &ChatResponse| {
        let mut messages = answer.warnings.iter().map(|warning| warning.message.as_str());
        messages.any(|message| message.starts_with("/payload/tool_choice: "))
    };
    assert!(misses(&answer), "{answer:?}");
    // Required: text is returned with a warning.
    let required = chosen(ToolChoice::Required);
    assert!(misses(&said(required.clone(), "It rains.")));
    assert!(!misses(&said(required, CALL)));
    assert!(!misses(&said(chat(), "It rains.")));
    let unknown = chosen(ToolChoice::Tool(String::from("unknown")));
    let error = prompted_by(unknown, &[]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidRequest);
}

#[test]
fn required_call_is_enforced_by_schema() {
    let mut chat = chat();
    chat.tool_choice = Some(ToolChoice::Required);
    chat.parallel_tool_calls = Some(false);
    let held = prompted_by(chat.clone(), &[Feature::JsonSchema])
        .unwrap()
        .unwrap();
    let Some(ResponseFormat::JsonSchema { schema, .. }) = &asked(&held).response_format else {
        panic!("{held:?}");
    };
    let calls = &schema["properties"]["calls"];
    assert_eq!(calls["maxItems"], 1);
    assert_eq!(
        calls["items"]["anyOf"][1]["properties"]["tool"]["enum"],
        json!(["time"])
    );
    // A `$ref` would not resolve in this schema.
    chat.tools = vec![tool("weather")];
    chat.tools[0].parameters =
        Some(json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}}));
    let held = prompted_by(chat.clone(), &[Feature::JsonSchema])
        .unwrap()
        .unwrap();
    let Some(ResponseFormat::JsonSchema { schema, .. }) = &asked(&held).response_format else {
        panic!("{held:?}");
    };
    let arguments = &schema["properties"]["calls"]["items"]["properties"]["arguments"];
    assert_eq!(*arguments, json!({"type": "object"}));
    // A back-end without JSON schemas gets the form in the prompt only.
    assert_eq!(asked(&prompted(chat)).response_format, None);
}

#[test]
fn response_schema_moves_to_the_prompt() {
    let mut chat = chat();
    chat.response_format = Some(ResponseFormat::JsonSchema {
        name: None,
        description: None,
        schema: json!({"required": ["label"]}).into(),
        strict: None,
    });
    let prompted = prompted_by(chat, &[Feature::JsonSchema]).unwrap().unwrap();
    assert_eq!(asked(&prompted).response_format, None);
    assert!(
        asked(&prompted).messages[1]
            .joined_text()
            .ends_with(r#"{"required":["label"]}"#)
    );
    let events = heard(prompted, answer(&["{\"label\":1}"], FinishReason::Stop));
    let warned = events
        .iter()
        .filter(|event| matches!(event, Event::Warning { .. }));
    assert_eq!(warned.count(), 2);
}

fn result(id: &str, parts: Vec<Part>) -> Part {
    Part::from(PartBody::ToolResult(ToolResult {
        call_id: String::from(id),
        content: parts,
        ..ToolResult::default()
    }))
}

fn call(id: &str, name: &str, raw: &str) -> Part {
    Part::from(PartBody::ToolCall(ToolCall::new(id, name, raw)))
}

#[test]
fn earlier_calls_and_results_become_text() {
    let mut chat = chat();
    chat.messages.extend([
        Message::new(
            Role::Assistant,
            vec![
                Part::text("Let me see."),
                call("a", "weather", r#"{"city": "Bern"}"#),
            ],
        ),
        // Some dialects send every call as a message of its own.
        Message::new(Role::Assistant, vec![call("b", "time", "")]),
        Message::new(Role::Assistant, vec![call("c", "time", "{broken")]),
        Message::new(Role::Tool, vec![result("b", vec![Part::text("noon")])]),
        Message::new(
            Role::Tool,
            vec![result("a", vec![Part::text("rain \"all\" day")])],
        ),
        Message::text(Role::User, "and tomorrow?"),
    ]);
    let prompted = prompted(chat);
    let messages = &asked(&prompted).messages;
    let texts: Vec<(Role, String)> = messages
        .iter()
        .skip(3)
        .map(|message| {
            (
                message.role,
                message.parts.iter().filter_map(Part::as_text).collect(),
            )
        })
        .collect();
    let called = concat!(
        "Let me see.\n",
        r#"{"calls":[{"tool":"weather","arguments":{"city": "Bern"}},"#,
        r#"{"tool":"time","arguments":{}},{"tool":"time","arguments":"{broken"}]}"#
    );
    let told = concat!(
        r#"{"results":[{"call":2,"tool":"time","content":"noon"},"#,
        r#"{"call":1,"tool":"weather","content":"rain \"all\" day"}]}"#
    );
    assert_eq!(
        texts,
        [
            (Role::Assistant, String::from(called)),
            (Role::User, String::from(told)),
            (Role::User, String::from("and tomorrow?")),
        ]
    );
    assert!(messages.iter().all(|message| !message.uses_tools()));
}

#[test]
fn content_next_to_a_result_is_preserved() {
    let picture: ir::Media =
        serde_json::from_value(json!({"kind": "inline_base64", "mime": "image/png", "data": "iVBORw0KGgo="}))
            .unwrap();
    let mut chat = chat();
    chat.tools.clear();
    chat.messages = vec![Message::new(
        Role::User,
        vec![
            result("x", vec![Part::text("see"), Part::from(picture)]),
            Part::text("what is it?"),
        ],
    )];
    let prompted = prompted(chat);
    let [message] = asked(&prompted).messages.as_slice() else {
        panic!("{prompted:?}");
    };
    assert_eq!(message.role, Role::User);
    assert_eq!(
        message.parts[0].as_text(),
        Some("{\"results\":[{\"content\":\"see\"}]}\n\n")
    );
    assert!(matches!(message.parts[1].body, PartBody::Media(_)));
    assert_eq!(message.parts[2].as_text(), Some("what is it?"));
}

#[test]
fn reply_in_the_agreed_form_becomes_calls() {
    let two = r#" {"calls" : [{"arguments":{"n": 1e400, "s":"}]"},"tool":"time"}, {"tool":"weather","arguments":{}}]}
"#;
    let answer = said(chat(), two);
    assert_eq!(answer.text(), "");
    assert_eq!(answer.finish_reason, Some(FinishReason::ToolCalls));
    let calls: Vec<&ToolCall> = answer.tool_calls().collect();
    assert_eq!(calls[0].name, "time");
    // Byte for byte: the arguments are not decoded and encoded again.
    assert_eq!(calls[0].arguments_raw, r#"{"n": 1e400, "s":"}]"}"#);
    assert_eq!(calls[1].name, "weather");
    assert!(!calls[0].id.is_empty() && calls[0].id != calls[1].id);
    let announced = answer.warnings.iter().map(|warning| warning.message.as_str());
    assert_eq!(
        announced.collect::<Vec<_>>(),
        ["/payload/tools: the back-end does not support tools; they are described in the prompt"]
    );
}

#[test]
fn near_miss_stays_text() {
    let one = r#"{"tool":"weather","arguments":{}}"#;
    for text in [
        String::new(),
        String::from("  \n"),
        String::from("It rains."),
        String::from("{}"),
        String::from(r#"{"calls":[]}"#),
        String::from(r#"{"calls":{}}"#),
        String::from(one),
        format!("[{one}]"),
        format!(r#"{{"calls":[{one}]"#),
        format!(r#"{{"calls":[{one}]}}."#),
        format!(r#"Sure: {{"calls":[{one}]}}"#),
        format!("```json\n{{\"calls\":[{one}]}}\n```"),
        format!(r#"{{"calls":[{one}],"why":"rain"}}"#),
        format!(r#"{{"calls":[{one}],"calls":[{one}]}}"#),
        format!(r#"{{"calls":[{one},{{"tool":"unknown","arguments":{{}}}}]}}"#),
        String::from(r#"{"calls":[{"tool":"weather"}]}"#),
        String::from(r#"{"calls":[{"tool":"weather","arguments":"{}"}]}"#),
        String::from(r#"{"calls":[{"tool":"weather","arguments":{},"id":1}]}"#),
    ] {
        let answer = said(chat(), &text);
        assert_eq!(answer.text(), text);
        assert_eq!(answer.tool_calls().count(), 0, "{text}");
        assert_eq!(answer.finish_reason, Some(FinishReason::Stop), "{text}");
    }
    let mut single = chat();
    single.parallel_tool_calls = Some(false);
    let twice = format!(r#"{{"calls":[{one},{one}]}}"#);
    assert_eq!(said(single.clone(), &twice).text(), twice);
    assert_eq!(said(chat(), &twice).tool_calls().count(), 2);
    assert_eq!(said(single, CALL).tool_calls().count(), 1);
    // A truncated text is not parsed.
    let cut = folded(chat(), answer(&[CALL], FinishReason::Length));
    assert_eq!(
        (cut.text().as_str(), cut.finish_reason),
        (CALL, Some(FinishReason::Length))
    );
    let long = format!(
        "{}{}",
        CALL.split_at(20).0,
        " ".repeat(crate::limits::CALLS_BYTES_MAX)
    );
    assert_eq!(said(chat(), &long).text(), long);
}

#[test]
fn text_is_buffered_only_while_it_can_be_a_call() {
    for (pieces, told_at) in [
        (&["It", " rains"][..], 0),
        (&[" ", "\n", "It"], 2),
        (&["{", "\"ca", "t\": 1}"], 2),
        (&["{\"calls\"", ":", "{"], 2),
    ] {
        let mut prompted = prompted(chat());
        let mut out = VecDeque::new();
        let mut events = answer(pieces, FinishReason::Stop).into_iter();
        events
            .by_ref()
            .take(2)
            .for_each(|event| prompted.reply.push(event, &mut out));
        for (at, event) in events.take(pieces.len()).enumerate() {
            prompted.reply.push(event, &mut out);
            let told = out.iter().any(|event| matches!(event, Event::BlockDelta { .. }));
            assert_eq!(told, at >= told_at, "{pieces:?} {at}");
            assert_eq!(prompted.reply.buffered_bytes() > 0, !told);
        }
    }
}

#[test]
fn error_during_a_call_discards_the_buffer() {
    let mut events = answer(&[CALL.split_at(30).0], FinishReason::Stop);
    events.truncate(3);
    let error = Error::new(ErrorKind::Network, Phase::MidStream, "gone");
    events.push(Event::Error { error });
    let out = heard(prompted(chat()), events);
    let speaks = |event: &Event| matches!(event, Event::BlockStart { .. } | Event::BlockDelta { .. });
    assert!(!out.iter().any(speaks), "{out:?}");
    assert!(matches!(out.last(), Some(Event::Error { .. })));
}

#[test]
fn other_blocks_keep_their_position() {
    let mut events = vec![
        Event::BlockStart {
            index: 0,
            block: Block::Reasoning {
                form: ir::ReasoningForm::default(),
                id: None,
                origin: None,
            },
        },
        Event::BlockDelta {
            index: 0,
            delta: Delta::Reasoning {
                text: String::from("rain?"),
            },
        },
        Event::BlockEnd { index: 0 },
        Event::BlockStart {
            index: 1,
            block: Block::Text,
        },
        Event::text(1, CALL),
        Event::BlockEnd { index: 1 },
        Event::Usage {
            usage: ir::Usage {
                output_tokens: Some(7),
                ..ir::Usage::default()
            },
        },
    ];
    events.push(Event::Finish {
        reason: FinishReason::Stop,
    });
    let answer = folded(chat(), events);
    assert!(matches!(answer.parts[0].body, PartBody::Reasoning(_)));
    assert!(matches!(answer.parts[1].body, PartBody::ToolCall(_)));
    assert_eq!(answer.usage.unwrap().output_tokens, Some(7));
}

/// Calls, near misses, and anything else.
fn replies() -> impl Strategy<Value = String> {
    let argument = prop_oneof![
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!({"calls": [{"tool": "time"}]})),
    ];
    let arguments = prop::collection::btree_map("[a-z]{1,3}", argument, 0..3);
    let call = (prop::sample::select(vec!["weather", "time"]), arguments)
        .prop_map(|(tool, arguments)| json!({"tool": tool, "arguments": arguments}));
    let calls = prop::collection::vec(call, 1..4).prop_map(|calls| json!({"calls": calls}));
    let calls = (calls, any::<bool>()).prop_map(|(calls, pretty)| match pretty {
        true => serde_json::to_string_pretty(&calls).unwrap(),
        false => calls.to_string(),
    });
    let broken =
        (calls.clone(), any::<prop::sample::Index>(), "[\\[\\]{}\", a]?").prop_map(|(text, at, new)| {
            let mut chars: Vec<char> = text.chars().collect();
            let at = at.index(chars.len());
            drop(chars.splice(at..=at, new.chars()));
            chars.into_iter().collect()
        });
    prop_oneof![3 => calls, 3 => broken, 1 => ".{0,40}", 1 => "[ \n{]{0,4}\"?[a-z\"]{0,8}"]
}

/// Splits the text into pieces of these lengths, cyclically.
fn cut(text: &str, lengths: &[usize]) -> Vec<String> {
    let mut chars = text.chars().peekable();
    let mut pieces = Vec::new();
    let mut lengths = lengths.iter().cycle();
    while chars.peek().is_some() {
        let length = *lengths.next().unwrap();
        pieces.push(chars.by_ref().take(length).collect());
    }
    pieces
}

proptest! {
    #[test]
    fn result_is_independent_of_chunking(
        text in replies(), lengths in prop::collection::vec(1usize..9, 1..6),
    ) {
        let pieces = cut(&text, &lengths);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let one = said(chat(), &text);
        let many = folded(chat(), answer(&pieces, FinishReason::Stop));
        prop_assert_eq!(&one, &many);
        match one.tool_calls().count() {
            0 => prop_assert_eq!(one.text(), text),
            _ => {
                let calls: Vec<Value> = one
                    .tool_calls()
                    .map(|call| json!({"tool": call.name, "arguments": call.arguments}))
                    .collect();
                prop_assert_eq!(one.text(), "");
                prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"calls": calls}));
            }
        }
    }
}
