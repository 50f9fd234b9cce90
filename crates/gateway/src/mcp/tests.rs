use std::collections::BTreeSet;

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::prop_oneof;

use super::names::ToolNames;
use super::sessions::Sessions;
use super::view::page;
use crate::allocated_bytes::assert_linear;
use crate::limits;
use rmcp::model::{ClientJsonRpcMessage, PaginatedRequestParams};

proptest! {
    /// For all module names, the mapping to valid tool names is one to one.
    #[test]
    fn tool_names_are_valid_and_unique(names in proptest::collection::btree_set(
        prop_oneof![any::<String>(), "[a-z][a-z-]{0,80}", "cognitive_[a-z]{1,4}", "[a-c]_[0-9a-f]{8}"],
        0..30,
    )) {
        let tools = ToolNames::of(names.iter().map(String::as_str));
        let mut seen = BTreeSet::new();
        for (tool, module) in tools.iter() {
            let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
            prop_assert!((1..=limits::MCP_NAME_CHARS_MAX).contains(&tool.len()) && tool.chars().all(plain), "{tool}");
            prop_assert!(!tool.starts_with("cognitive_") || tool.len() > "cognitive_".len() + 8, "{tool}");
            prop_assert_eq!(tools.module(tool), Some(module));
            prop_assert_eq!(tools.tool(module), Some(tool));
            seen.insert(String::from(module));
        }
        prop_assert_eq!(seen, names);
    }
}

#[test]
fn keeps_valid_names_and_maps_others_stably() {
    let tools = ToolNames::of(["text-classifier", "größe", "größe ", "cognitive_run"]);
    let natural: Vec<_> = tools.iter().filter(|(tool, module)| tool == module).collect();
    assert_eq!(natural, [("text-classifier", "text-classifier")]);
    assert_eq!(tools.iter().count(), 4);
    // Hosts store tool names in their settings: the name is independent of other modules.
    assert_eq!(ToolNames::of(["größe"]).tool("größe"), tools.tool("größe"));
}

#[test]
fn session_is_visible_only_to_its_owner() {
    let sessions = Sessions::default();
    assert!(sessions.add("s", "a").is_empty());
    assert!(sessions.is_of("s", "a"));
    assert!(!sessions.is_of("s", "b"));
    assert!(!sessions.is_of("t", "a"));
    sessions.forget("s");
    assert!(!sessions.is_of("s", "a"));
}

#[test]
fn evicts_least_recently_used_sessions() {
    let sessions = Sessions::default();
    let max = limits::MCP_SESSIONS_PER_CLIENT_MAX;
    assert!(sessions.add("other", "b").is_empty());
    for number in 0..max {
        assert!(sessions.add(&number.to_string(), "a").is_empty());
    }
    assert!(sessions.is_of("0", "a"), "counts as a use");
    let gone = sessions.add("one more", "a");
    assert_eq!(gone.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["1"]);
    assert!(sessions.is_of("0", "a") && sessions.is_of("other", "b"));
}

#[test]
fn paginates_long_lists() {
    let all: Vec<usize> = (0..2 * limits::MCP_PAGE_MAX + 5).collect();
    let mut got = Vec::new();
    let mut cursor = None;
    loop {
        let request = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let (items, next) = page(all.clone(), Some(request)).unwrap();
        assert!(items.len() <= limits::MCP_PAGE_MAX);
        got.extend(items);
        match next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(got, all);
    let wrong = PaginatedRequestParams::default().with_cursor(Some(String::from("x")));
    assert!(page(all, Some(wrong)).is_err());
}

#[test]
fn messages_are_parsed_in_linear_time() {
    let parse = |text: &str| serde_json::from_str::<ClientJsonRpcMessage>(text);
    let call = |arguments: String, meta: String| {
        format!(
            r#"{{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {{"name": "a", "arguments": {{"a": {arguments}}}, "_meta": {{"b": {meta}}}}}}}"#
        )
    };
    let list = |size: usize| format!("[{}1]", r#"{"a": [1]},"#.repeat(size));
    let many = |size: usize| {
        let members: String = (0..size).map(|index| format!(r#""m{index}": null,"#)).collect();
        format!(r#"{{{members}"z": 1}}"#)
    };
    let messages: [&dyn Fn(usize) -> String; 6] = [
        &|size| call(list(size), String::from("1")),
        &|size| call(many(size), String::from("1")),
        &|size| call(String::from("1"), list(size)),
        &|size| call(format!("\"{}\"", "\\u00e9".repeat(size)), String::from("1")),
        &|size| {
            format!(
                r#"{{"jsonrpc": "2.0", "id": 1, "method": "unknown", "params": {}}}"#,
                many(size)
            )
        },
        &|size| {
            format!(
                r#"{{"jsonrpc": "2.0", "method": "notifications/unknown", "params": {}}}"#,
                many(size)
            )
        },
    ];
    for message in messages {
        let message = |size: usize| message(size);
        assert!(parse(&message(1)).is_ok(), "{}", message(1));
        assert_linear(2_000, message, |text| assert!(parse(&text).is_ok()));
    }
}
