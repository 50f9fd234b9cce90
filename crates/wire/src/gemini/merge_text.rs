//! Merges adjacent texts of a response into one text, and adjacent thoughts into one thought: a stream shows
//! no border between them, so a unary response must not either. The original lengths are noted. A signature,
//! or any other field next to the text, ends the merged part.

use ir::{Ext, Part, PartBody};
use serde_json::json;

use crate::gemini::OWN;

const PIECES: &str = "$pieces";
const SIGNATURE: &str = "thoughtSignature";

pub(super) fn join(parts: Vec<Part>) -> Vec<Part> {
    let mut out: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        match out.last_mut() {
            Some(last) if continues(last, &part) => append(last, part),
            _ => out.push(part),
        }
    }
    out
}

fn text_of(body: &PartBody) -> Option<&str> {
    match body {
        PartBody::Text(text) => Some(text),
        PartBody::Reasoning(reasoning) => reasoning.text.as_deref(),
        _ => None,
    }
}

fn continues(last: &Part, next: &Part) -> bool {
    let open = match (&last.body, &next.body) {
        (PartBody::Text(_), PartBody::Text(_)) => true,
        (PartBody::Reasoning(before), PartBody::Reasoning(_)) => before.signature.is_none(),
        _ => false,
    };
    let empty = text_of(&next.body).is_some_and(str::is_empty);
    open && bare(&last.ext, PIECES) && (empty || goes_on_with(&next.ext))
}

/// Whether a text part with these extra fields may continue the previous text.
pub(super) fn goes_on_with(ext: &Ext) -> bool {
    bare(ext, SIGNATURE)
}

fn bare(ext: &Ext, free: &str) -> bool {
    ext.get(OWN).is_none_or(|rest| rest.keys().all(|key| key == free))
}

fn append(last: &mut Part, next: Part) {
    if last.ext.value(OWN, PIECES).is_none() {
        let length = text_of(&last.body).map_or(0, str::len);
        last.ext.push(OWN, PIECES, json!(length));
    }
    let length = text_of(&next.body).map_or(0, str::len);
    last.ext.push(OWN, PIECES, json!(length));
    match (&mut last.body, next.body) {
        (PartBody::Text(text), PartBody::Text(more)) => text.push_str(&more),
        (PartBody::Reasoning(before), PartBody::Reasoning(more)) => {
            let text = before.text.get_or_insert_default();
            text.push_str(more.text.as_deref().unwrap_or_default());
            before.signature = more.signature;
        }
        _ => {}
    }
    last.ext.merge(next.ext);
}

/// The original parts, if the text has not changed since they were merged.
pub(super) fn split(part: &Part) -> Vec<Part> {
    pieces(part).unwrap_or_else(|| vec![part.clone()])
}

fn pieces(part: &Part) -> Option<Vec<Part>> {
    let lengths = part.ext.value(OWN, PIECES)?.as_array()?;
    let mut text = text_of(&part.body)?;
    let mut pieces = Vec::with_capacity(lengths.len());
    for length in lengths {
        let length = length.as_u64().and_then(|length| usize::try_from(length).ok())?;
        let (piece, rest) = text.split_at_checked(length)?;
        text = rest;
        let body = match &part.body {
            PartBody::Reasoning(whole) => {
                let mut reasoning = whole.clone();
                reasoning.text = Some(String::from(piece));
                reasoning.signature = None;
                PartBody::Reasoning(reasoning)
            }
            _ => PartBody::Text(String::from(piece)),
        };
        pieces.push(Part::from(body));
    }
    if !text.is_empty() {
        return None;
    }
    let last = pieces.last_mut()?;
    last.ext = part.ext.clone();
    last.ext.remove(OWN, PIECES);
    if let (PartBody::Reasoning(last), PartBody::Reasoning(whole)) = (&mut last.body, &part.body) {
        last.signature.clone_from(&whole.signature);
    }
    Some(pieces)
}
