//! A request of plain messages, as a module's is: written straight as text. It says what [`super::encode_request`]
//! would say, byte for byte, and nothing where that would have anything to book or to put back.

use ir::{ChatRequest, Generation, ResponseFormat};

use super::message_encode::plain;

/// What asks `model` this, and to be told what a stream of it used. `None`: it is more than plain.
pub fn write_request(chat: &ChatRequest, model: &str) -> Option<Vec<u8>> {
    let ChatRequest {
        model: _,
        messages,
        tools,
        tool_choice: None,
        parallel_tool_calls: None,
        generation,
        response_format,
        reasoning: None,
        modalities,
        user: None,
        metadata: None,
        extra,
        ext,
        rest,
    } = chat
    else {
        return None;
    };
    let stream = only_stream(generation)?;
    let bare = tools.is_empty() && modalities.is_empty() && extra.is_empty() && ext.is_empty();
    if !bare || !rest.is_empty() {
        return None;
    }
    let mut out = Vec::with_capacity(room(chat));
    out.extend_from_slice(b"{\"model\":");
    put_text(model, &mut out)?;
    out.extend_from_slice(b",\"messages\":[");
    for (at, message) in messages.iter().enumerate() {
        let (role, text) = plain(message)?;
        out.extend_from_slice(if at == 0 { b"{\"role\":" } else { b",{\"role\":" });
        put_text(role, &mut out)?;
        out.extend_from_slice(b",\"content\":");
        put_text(text, &mut out)?;
        out.push(b'}');
    }
    out.push(b']');
    match stream {
        Some(true) => out.extend_from_slice(b",\"stream\":true"),
        Some(false) => out.extend_from_slice(b",\"stream\":false"),
        None => {}
    }
    if let Some(format) = response_format {
        out.extend_from_slice(b",\"response_format\":");
        put_format(format, &mut out)?;
    }
    if stream == Some(true) {
        out.extend_from_slice(b",\"stream_options\":{\"include_usage\":true}");
    }
    out.push(b'}');
    Some(out)
}

/// Whether it is to be a stream, where no other knob is turned.
fn only_stream(generation: &Generation) -> Option<Option<bool>> {
    let Generation {
        temperature: None,
        top_p: None,
        top_k: None,
        max_tokens: None,
        stop,
        seed: None,
        presence_penalty: None,
        frequency_penalty: None,
        n: None,
        logprobs: None,
        top_logprobs: None,
        stream,
        rest,
    } = generation
    else {
        return None;
    };
    (stop.is_empty() && rest.is_empty()).then_some(*stream)
}

fn put_format(format: &ResponseFormat, out: &mut Vec<u8>) -> Option<()> {
    let (name, description, schema, strict) = match format {
        ResponseFormat::Text => {
            out.extend_from_slice(b"{\"type\":\"text\"}");
            return Some(());
        }
        ResponseFormat::JsonObject => {
            out.extend_from_slice(b"{\"type\":\"json_object\"}");
            return Some(());
        }
        ResponseFormat::JsonSchema {
            name,
            description,
            schema,
            strict,
        } => (name, description, schema, strict),
    };
    out.extend_from_slice(b"{\"type\":\"json_schema\",\"json_schema\":{\"name\":");
    put_text(name.as_deref().unwrap_or("response"), out)?;
    if let Some(description) = description {
        out.extend_from_slice(b",\"description\":");
        put_text(description, out)?;
    }
    out.extend_from_slice(b",\"schema\":");
    out.extend_from_slice(schema.text().as_bytes());
    match strict {
        Some(true) => out.extend_from_slice(b",\"strict\":true"),
        Some(false) => out.extend_from_slice(b",\"strict\":false"),
        None => {}
    }
    out.extend_from_slice(b"}}");
    Some(())
}

fn put_text(text: &str, out: &mut Vec<u8>) -> Option<()> {
    serde_json::to_writer(out, text).ok()
}

/// About as much as it takes: the texts, some of whose letters are written as two, and the words around them.
fn room(chat: &ChatRequest) -> usize {
    let texts = chat.messages.iter().filter_map(plain).map(|(_, text)| text.len());
    let schema = match &chat.response_format {
        Some(ResponseFormat::JsonSchema { schema, .. }) => schema.text().len(),
        _ => 0,
    };
    let texts: usize = texts.sum();
    texts + texts / 8 + schema + 256 + chat.messages.len() * 32
}

#[cfg(test)]
mod tests {
    use ir::{ChatRequest, Component, Dialect, Ledger, Message, ResponseFormat, Role, ToolChoice};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::{ask_for_usage, encode_request};
    use super::write_request;

    /// What is written by way of a tree, and what was noted on the way.
    fn by_tree(chat: &ChatRequest, model: &str) -> (Vec<u8>, usize) {
        let mut named = chat.clone();
        named.model = Some(String::from(model));
        let mut ledger = Ledger::new(Component::Adapter);
        let mut body = encode_request(&named, &mut ledger).unwrap();
        ask_for_usage(&mut body);
        (serde_json::to_vec(&body).unwrap(), ledger.entries().len())
    }

    fn any_format() -> impl Strategy<Value = Option<ResponseFormat>> {
        let schema = (
            any::<Option<String>>(),
            any::<Option<String>>(),
            any::<String>(),
            any::<Option<bool>>(),
        );
        prop_oneof![
            Just(None),
            Just(Some(ResponseFormat::Text)),
            Just(Some(ResponseFormat::JsonObject)),
            schema.prop_map(
                |(name, description, text, strict)| Some(ResponseFormat::JsonSchema {
                    name,
                    description,
                    schema: json!({"type": "object", "title": text}).into(),
                    strict,
                })
            ),
        ]
    }

    fn any_role() -> impl Strategy<Value = Role> {
        prop_oneof![
            Just(Role::System),
            Just(Role::Developer),
            Just(Role::User),
            Just(Role::Assistant)
        ]
    }

    proptest! {
        #[test]
        fn it_is_what_would_have_been_written(
            messages in prop::collection::vec((any_role(), any::<String>()), 0..4),
            model in any::<String>(),
            stream in any::<Option<bool>>(),
            response_format in any_format(),
        ) {
            let messages = messages.into_iter().map(|(role, text)| Message::text(role, text));
            let mut chat = ChatRequest {
                messages: messages.collect(),
                response_format,
                ..ChatRequest::default()
            };
            chat.generation.stream = stream;
            let written = write_request(&chat, &model);
            prop_assert_eq!(written, Some(by_tree(&chat, &model).0));
            prop_assert_eq!(by_tree(&chat, &model).1, 0);
        }
    }

    /// For any field beyond the plain ones, the fast path returns `None`.
    #[test]
    fn what_is_more_than_plain_is_not_written() {
        let plain = ChatRequest::new("m", vec![Message::text(Role::User, "text")]);
        let with = |change: &dyn Fn(&mut ChatRequest)| {
            let mut chat = plain.clone();
            change(&mut chat);
            write_request(&chat, "m")
        };
        assert!(with(&|_| {}).is_some());
        let more: [&dyn Fn(&mut ChatRequest); 10] = [
            &|chat| chat.messages.push(Message::text(Role::Tool, "text")),
            &|chat| chat.tool_choice = Some(ToolChoice::Auto),
            &|chat| chat.parallel_tool_calls = Some(true),
            &|chat| chat.generation.max_tokens = Some(1),
            &|chat| chat.generation.stop.push(String::from("x")),
            &|chat| chat.modalities.push(String::from("audio")),
            &|chat| chat.user = Some(String::from("u")),
            &|chat| chat.ext.set(Dialect::OpenaiChat, "a", 1),
            &|chat| drop(chat.rest.insert(String::from("a"), Value::Null)),
            &|chat| drop(chat.generation.rest.insert(String::from("a"), Value::Null)),
        ];
        for (at, change) in more.into_iter().enumerate() {
            assert_eq!(with(change), None, "{at}");
        }
    }
}
