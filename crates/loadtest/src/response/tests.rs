//! Streamed and unstreamed responses of every dialect contain the same text, and unary responses have their
//! content type.

use serde_json::Value;

use super::*;

/// The complete text and the last usage report.
fn read(stream: &str) -> (String, Value) {
    let (mut content, mut usage) = (String::new(), Value::Null);
    let datas = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]");
    for data in datas {
        let event: Value = serde_json::from_str(data).unwrap();
        for place in ["/choices/0/delta/content", "/delta/text", "/delta"] {
            content.push_str(event.pointer(place).and_then(Value::as_str).unwrap_or_default());
        }
        for place in ["/usage", "/response/usage"] {
            if let Some(told) = event.pointer(place).filter(|told| !told.is_null()) {
                usage = told.clone();
            }
        }
    }
    (content, usage)
}

#[test]
fn streamed_and_unstreamed_responses_are_equal() {
    let places = [
        (
            ResponseRoute::Chat,
            "/choices/0/message/content",
            "completion_tokens",
        ),
        (
            ResponseRoute::Responses,
            "/output/0/content/0/text",
            "output_tokens",
        ),
        (ResponseRoute::Messages, "/content/0/text", "output_tokens"),
    ];
    for (route, place, count) in places {
        for model in ["mock-t3", "mock-env-t3"] {
            let behaviour = Behaviour::of(model);
            let (_, whole) = route.whole(model, behaviour);
            let whole: Value = serde_json::from_slice(&whole).unwrap();
            let events = route.events(model, behaviour).unwrap();
            let all = [Some(events.first), events.head]
                .into_iter()
                .chain((0..3).map(|_| Some(events.token.clone())))
                .chain([events.tail, Some(events.last)]);
            let text: Vec<u8> = all.flatten().flatten().collect();
            let (content, usage) = read(std::str::from_utf8(&text).unwrap());
            assert_eq!(whole.pointer(place).unwrap(), &content, "{route:?}");
            assert!(content.contains("tok tok tok "), "{content}");
            assert_eq!(usage[count], 3, "{route:?}");
            assert_eq!(whole["usage"][count], 3, "{route:?}");
        }
    }
}

#[test]
fn unary_responses_are_valid_and_not_streamed() {
    let behaviour = Behaviour::of("mock-t2");
    for (path, route) in ResponseRoute::ALL {
        assert_eq!(ResponseRoute::of(&format!("/v1{path}")), Some(route));
        let (kind, bytes) = route.whole("mock-t2", behaviour);
        match kind {
            "audio/wav" => assert_eq!(u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]), 44),
            _ => assert!(serde_json::from_slice::<Value>(&bytes).unwrap().is_object()),
        }
    }
    assert!(ResponseRoute::Speech.events("mock", behaviour).is_none());
    assert_eq!(ResponseRoute::of("/v1/elsewhere"), None);
}
