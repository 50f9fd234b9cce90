//! Edits of JSON text that change no other byte. The text has been parsed and is valid JSON, so counting
//! brackets outside of strings suffices to find the ends of values.

use std::ops::Range;

use serde_json::Value;

use super::edit::{Edit, InsertAt};
use super::text::{line_start, splice};

/// Applies the edit to a text. `None` if its position is not found.
pub(super) fn apply(text: &str, edit: &Edit) -> Option<String> {
    match edit {
        Edit::Insert {
            at,
            key,
            value,
            place,
            ..
        } => insert(text, &find(text, at)?, key, value, place),
        Edit::Rename { at, key, to } => {
            let member = member(text, &find(text, at)?, key)?;
            Some(splice(text, member.key, &quote(to)))
        }
        Edit::Set { at, key, value } => {
            let mut whole = at.clone();
            whole.push(key.clone());
            let range = find(text, &whole)?;
            let indent = indent_of(text, range.start);
            let multiline = text.contains('\n');
            Some(splice(
                text,
                range,
                &render(value, &unit(text), &indent, multiline),
            ))
        }
        Edit::Remove { at, key } => remove(text, &find(text, at)?, key),
        Edit::Push { at, value } => push(text, &find(text, at)?, value),
    }
}

/// The offset of the key or item at a path, for line numbers.
pub(super) fn offset(text: &str, at: &[String]) -> Option<usize> {
    let (last, parents) = at.split_last()?;
    let parent = find(text, parents)?;
    match text.as_bytes().get(parent.start)? {
        b'{' => member(text, &parent, last).map(|member| member.key.start),
        _ => find(text, at).map(|range| range.start),
    }
}

/// A complete document, indented by two spaces, with a final line break.
pub(crate) fn document(value: &Value) -> String {
    format!("{}\n", render(value, "  ", "", true))
}

#[derive(Clone, Debug)]
struct JsonMember {
    key: Range<usize>,
    value: Range<usize>,
}

fn find(text: &str, at: &[String]) -> Option<Range<usize>> {
    let start = skip_space(text, 0);
    let mut range = start..skip_value(text, start)?;
    for key in at {
        range = match text.as_bytes().get(range.start)? {
            b'{' => member(text, &range, key)?.value,
            b'[' => items(text, &range)?.get(key.parse::<usize>().ok()?)?.clone(),
            _ => return None,
        };
    }
    Some(range)
}

fn member(text: &str, object: &Range<usize>, key: &str) -> Option<JsonMember> {
    members(text, object)?.into_iter().find(|member| {
        let name = text.get(member.key.clone()).map(serde_json::from_str::<String>);
        matches!(name, Some(Ok(name)) if name == key)
    })
}

fn members(text: &str, object: &Range<usize>) -> Option<Vec<JsonMember>> {
    let bytes = text.as_bytes();
    if bytes.get(object.start) != Some(&b'{') {
        return None;
    }
    let mut members = Vec::new();
    let mut at = skip_space(text, object.start + 1);
    while bytes.get(at)? != &b'}' {
        let key = at..skip_value(text, at)?;
        let colon = skip_space(text, key.end);
        let start = skip_space(text, colon + 1);
        let value = start..skip_value(text, start)?;
        at = skip_space(text, value.end);
        members.push(JsonMember { key, value });
        if bytes.get(at) == Some(&b',') {
            at = skip_space(text, at + 1);
        }
    }
    Some(members)
}

fn items(text: &str, array: &Range<usize>) -> Option<Vec<Range<usize>>> {
    let bytes = text.as_bytes();
    if bytes.get(array.start) != Some(&b'[') {
        return None;
    }
    let mut items = Vec::new();
    let mut at = skip_space(text, array.start + 1);
    while bytes.get(at)? != &b']' {
        let item = at..skip_value(text, at)?;
        at = skip_space(text, item.end);
        items.push(item);
        if bytes.get(at) == Some(&b',') {
            at = skip_space(text, at + 1);
        }
    }
    Some(items)
}

fn skip_space(text: &str, at: usize) -> usize {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// The end of the value that starts at `at`.
fn skip_value(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut at = at;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at += 1;
                while bytes.get(at)? != &b'"' {
                    at += if bytes.get(at)? == &b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            byte if byte.is_ascii_whitespace() || matches!(byte, b',' | b':') => at += 1,
            _ => {
                let rest = bytes.get(at..)?;
                let word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
                let length = rest.iter().take_while(|byte| word(byte)).count();
                at += length.max(1);
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

fn insert(text: &str, object: &Range<usize>, key: &str, value: &Value, place: &InsertAt) -> Option<String> {
    let members = members(text, object)?;
    if is_minified(text) {
        return insert_minified(text, object, &members, key, value, place);
    }
    let Some(first) = members.first() else {
        let indent = indent_of(text, object.start);
        if !text.contains('\n') {
            let inner = format!("{{{}: {}}}", quote(key), render(value, "", "", false));
            return Some(splice(text, object.clone(), &inner));
        }
        let deeper = format!("{indent}{}", unit(text));
        let inner = render(value, &unit(text), &deeper, true);
        let whole = format!("{{\n{deeper}{}: {inner}\n{indent}}}", quote(key));
        return Some(splice(text, object.clone(), &whole));
    };
    let lead = text.get(object.start + 1..first.key.start)?;
    let multiline = lead.contains('\n');
    let indent = indent_of(text, first.key.start);
    let entry = format!(
        "{}: {}",
        quote(key),
        render(value, &unit(text), &indent, multiline)
    );
    let gap = if multiline {
        format!("\n{indent}")
    } else {
        String::from(" ")
    };
    let after = match place {
        InsertAt::First => {
            return Some(splice(
                text,
                first.key.start..first.key.start,
                &format!("{entry},{gap}"),
            ));
        }
        InsertAt::After(key) => member(text, object, key).or_else(|| members.last().cloned())?,
        InsertAt::Last => members.last().cloned()?,
    };
    Some(splice(
        text,
        after.value.end..after.value.end,
        &format!(",{gap}{entry}"),
    ))
}

/// Minified text stays minified.
fn insert_minified(
    text: &str,
    object: &Range<usize>,
    members: &[JsonMember],
    key: &str,
    value: &Value,
    place: &InsertAt,
) -> Option<String> {
    let entry = format!("{}:{value}", quote(key));
    let (Some(first), Some(last)) = (members.first(), members.last()) else {
        return Some(splice(text, object.clone(), &format!("{{{entry}}}")));
    };
    let after = match place {
        InsertAt::First => {
            return Some(splice(
                text,
                first.key.start..first.key.start,
                &format!("{entry},"),
            ));
        }
        InsertAt::After(key) => member(text, object, key).unwrap_or_else(|| last.clone()),
        InsertAt::Last => last.clone(),
    };
    Some(splice(
        text,
        after.value.end..after.value.end,
        &format!(",{entry}"),
    ))
}

fn push(text: &str, array: &Range<usize>, value: &Value) -> Option<String> {
    let items = items(text, array)?;
    let Some(last) = items.last() else {
        let indent = indent_of(text, array.start);
        let inner = render(value, &unit(text), &indent, false);
        return Some(splice(text, array.clone(), &format!("[{inner}]")));
    };
    let first = items.first()?;
    let multiline = text.get(array.start..first.start)?.contains('\n');
    let indent = indent_of(text, first.start);
    let gap = if multiline {
        format!("\n{indent}")
    } else if is_minified(text) {
        String::new()
    } else {
        String::from(" ")
    };
    let item = render(value, &unit(text), &indent, multiline);
    Some(splice(text, last.end..last.end, &format!(",{gap}{item}")))
}

fn remove(text: &str, object: &Range<usize>, key: &str) -> Option<String> {
    let members = members(text, object)?;
    let gone = member(text, object, key)?;
    let index = members.iter().position(|member| member.key == gone.key)?;
    let range = match (
        index.checked_sub(1).and_then(|before| members.get(before)),
        members.get(index + 1),
    ) {
        (_, Some(next)) => gone.key.start..next.key.start,
        (Some(before), None) => before.value.end..gone.value.end,
        (None, None) => object.start + 1..object.end - 1,
    };
    Some(splice(text, range, ""))
}

/// One line, and no space after the first colon.
fn is_minified(text: &str) -> bool {
    let colon = text.find("\":").map(|at| at + 2);
    let spaced = colon
        .and_then(|at| text.as_bytes().get(at))
        .is_none_or(u8::is_ascii_whitespace);
    !text.trim_end().contains('\n') && !spaced
}

/// The indentation of one level: the smallest indentation of any indented line.
fn unit(text: &str) -> String {
    let indents = text.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let width = line.len() - line.trim_start_matches([' ', '\t']).len();
        line.get(..width).unwrap_or_default()
    });
    let least = indents
        .filter(|indent| !indent.is_empty())
        .min_by_key(|indent| indent.len());
    String::from(least.unwrap_or("  "))
}

/// The indentation of the line that contains `at`.
fn indent_of(text: &str, at: usize) -> String {
    let line = text.get(line_start(text, at)..).unwrap_or_default();
    line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
}

/// Longest value that is written on one line in multi-line output.
const INLINE_CHARS_MAX: usize = 72;

/// A value as text, its lines after the first indented by `indent`. Small leaves stay on one line.
fn render(value: &Value, unit: &str, indent: &str, multiline: bool) -> String {
    if !multiline || is_leaf(value) {
        return inline(value);
    }
    let deeper = format!("{indent}{unit}");
    match value {
        Value::Object(map) if !map.is_empty() => {
            let line = |(key, value): (&String, &Value)| {
                format!("{deeper}{}: {}", quote(key), render(value, unit, &deeper, true))
            };
            let lines: Vec<_> = map.iter().map(line).collect();
            format!("{{\n{}\n{indent}}}", lines.join(",\n"))
        }
        Value::Array(list) if !list.is_empty() => {
            let lines: Vec<_> = list
                .iter()
                .map(|item| format!("{deeper}{}", render(item, unit, &deeper, true)))
                .collect();
            format!("[\n{}\n{indent}]", lines.join(",\n"))
        }
        value => inline(value),
    }
}

/// Short, and no object within an object.
fn is_leaf(value: &Value) -> bool {
    let flat = match value {
        Value::Object(map) => !map.values().any(Value::is_object),
        Value::Array(list) => !list.iter().any(|item| item.is_object() || item.is_array()),
        _ => true,
    };
    flat && inline(value).chars().count() <= INLINE_CHARS_MAX
}

fn inline(value: &Value) -> String {
    match value {
        Value::Array(list) => {
            let items: Vec<_> = list.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) if map.is_empty() => String::from("{}"),
        Value::Object(map) => {
            let members: Vec<_> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", quote(key), inline(value)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
        scalar => scalar.to_string(),
    }
}

fn quote(key: &str) -> String {
    Value::String(String::from(key)).to_string()
}
