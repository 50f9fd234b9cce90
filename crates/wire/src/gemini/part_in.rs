//! Parts, read. Calls may come without ids; then they get one, so that their results find them.

use ir::media::Base64;
use ir::{Fields, Media, MediaSource, Origin, Part, PartBody, Reasoning, ToolCall, ToolResult};
use serde_json::{Value, json};

use crate::gemini::OWN;

/// Calls that have been seen and wait for their results.
#[derive(Debug, Default)]
pub(super) struct Calls {
    seen: usize,
    open: Vec<(String, String)>,
}

impl Calls {
    /// The id of the next call of this name that says none.
    pub(super) fn invent(&mut self, name: &str) -> String {
        format!("call_{}_{name}", self.seen)
    }

    pub(super) fn called(&mut self, name: &str, id: &str) {
        self.seen += 1;
        self.open.push((String::from(name), String::from(id)));
    }

    fn answered(&mut self, name: &str) -> Option<String> {
        let at = self.open.iter().position(|(known, _)| known == name)?;
        Some(self.open.remove(at).1)
    }
}

pub(super) fn decode(value: Value, calls: &mut Calls) -> Part {
    let unknown = |raw: Value| {
        Part::from(PartBody::Unknown {
            dialect: String::from(OWN.as_str()),
            raw,
        })
    };
    let Some(mut fields) = Fields::of(value.clone()) else {
        return unknown(value);
    };
    let kinds = [
        "text",
        "inlineData",
        "fileData",
        "functionCall",
        "functionResponse",
    ];
    let mut present = kinds.iter().filter(|kind| fields.peek(kind).is_some());
    let (Some(kind), None) = (present.next(), present.next()) else {
        return unknown(value);
    };
    let mut ext = ir::Ext::default();
    let body = match *kind {
        "text" => text(&mut fields),
        "inlineData" => media(&mut fields, "inlineData", "data"),
        "fileData" => media(&mut fields, "fileData", "fileUri"),
        "functionCall" => call(&mut fields, &mut ext, calls),
        _ => result(&mut fields, &mut ext, calls),
    };
    let Some(body) = body else { return unknown(value) };
    ext.extend(OWN, fields.rest());
    Part {
        body,
        cache: None,
        ext,
    }
}

fn text(fields: &mut Fields) -> Option<PartBody> {
    let text = fields.string("text")?;
    if fields.peek("thought") != Some(&Value::Bool(true)) {
        return Some(PartBody::Text(text));
    }
    fields.take("thought");
    let signature = fields.string("thoughtSignature");
    Some(PartBody::Reasoning(Reasoning {
        signature,
        ..Reasoning::text(text, Origin::dialect(OWN))
    }))
}

fn media(fields: &mut Fields, key: &str, data: &str) -> Option<PartBody> {
    let inner = fields.peek(key)?.as_object()?;
    let text = inner.get(data)?.as_str()?;
    let source = if data == "data" {
        MediaSource::Inline(Base64::from_text(text))
    } else {
        MediaSource::Remote(String::from(text))
    };
    let mime = match inner.get("mimeType") {
        Some(mime) => Some(String::from(mime.as_str()?)),
        None if data == "data" => return None,
        None => None,
    };
    let media = Media::new(source, mime);
    let mut inner = fields.object(key)?;
    inner.take(data);
    inner.take("mimeType");
    fields.keep(key, inner);
    Some(PartBody::Media(Box::new(media)))
}

fn call(fields: &mut Fields, ext: &mut ir::Ext, calls: &mut Calls) -> Option<PartBody> {
    let inner = fields.peek("functionCall")?.as_object()?;
    let name = String::from(inner.get("name")?.as_str()?);
    if inner.get("id").is_some_and(|id| !id.is_string()) {
        return None;
    }
    let mut inner = fields.object("functionCall")?;
    inner.take("name");
    let id = inner.string("id").unwrap_or_else(|| {
        ext.set(OWN, "$id", "absent");
        calls.invent(&name)
    });
    let arguments = inner.take("args").unwrap_or_else(|| {
        ext.set(OWN, "$args", "absent");
        json!({})
    });
    calls.called(&name, &id);
    fields.keep("functionCall", inner);
    Some(PartBody::ToolCall(ToolCall::from_value(id, name, arguments)))
}

fn result(fields: &mut Fields, ext: &mut ir::Ext, calls: &mut Calls) -> Option<PartBody> {
    let inner = fields.peek("functionResponse")?.as_object()?;
    let name = String::from(inner.get("name")?.as_str()?);
    if inner.get("id").is_some_and(|id| !id.is_string()) || !inner.contains_key("response") {
        return None;
    }
    let mut inner = fields.object("functionResponse")?;
    inner.take("name");
    let call_id = inner.string("id").unwrap_or_else(|| {
        ext.set(OWN, "$id", "absent");
        calls.answered(&name).unwrap_or_else(|| name.clone())
    });
    let response = inner.take("response").unwrap_or_default();
    let content = vec![Part::text(response.to_string())];
    ext.set(OWN, "$response", response);
    fields.keep("functionResponse", inner);
    Some(PartBody::ToolResult(ToolResult {
        call_id,
        name: Some(name),
        content,
        ..ToolResult::default()
    }))
}
