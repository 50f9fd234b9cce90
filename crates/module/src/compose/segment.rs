//! Splits a prompt template into calls, result placeholders and text. Placeholders of the input are expanded
//! in text segments only: inserted results are never parsed as template.

use memchr::memchr_iter;

use super::call::{Call, calls};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment<'a> {
    Text(&'a str),
    Call(Call<'a>),
    /// `{{name.meta.risk}}`: as written, and without its braces.
    Result {
        written: &'a str,
        path: &'a str,
    },
}

/// The segments of the template in order. A malformed call is text.
pub(crate) fn segments(template: &str) -> Vec<Segment<'_>> {
    let mut cuts: Vec<(std::ops::Range<usize>, Segment<'_>)> = calls(template)
        .flatten()
        .map(|call| (call.range.clone(), Segment::Call(call)))
        .collect();
    let bytes = template.as_bytes();
    if memchr_iter(b'{', bytes).any(|at| bytes.get(at + 1) == Some(&b'{')) {
        cuts.extend(injections(template));
    }
    cuts.sort_by_key(|(range, _)| range.start);
    let mut segments = Vec::new();
    let mut at = 0;
    for (range, segment) in cuts {
        // A placeholder inside the arguments of a call belongs to the call.
        if range.start < at {
            continue;
        }
        if let Some(text) = template.get(at..range.start).filter(|text| !text.is_empty()) {
            segments.push(Segment::Text(text));
        }
        at = range.end;
        segments.push(segment);
    }
    if let Some(text) = template.get(at..).filter(|text| !text.is_empty()) {
        segments.push(Segment::Text(text));
    }
    segments
}

fn injections(template: &str) -> impl Iterator<Item = (std::ops::Range<usize>, Segment<'_>)> {
    template.match_indices("{{").filter_map(move |(start, _)| {
        let inner = template.get(start + 2..)?;
        let length = inner.find("}}")?;
        let path = inner.get(..length)?.trim();
        let mut parts = path.split(['.', '[']);
        let name = parts.next()?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '#');
        let named = !name.is_empty() && name.chars().all(is_name);
        let known = matches!(parts.next()?, "meta" | "data" | "ok" | "error");
        let range = start..start + length + 4;
        let written = template.get(range.clone())?;
        (named && known).then_some((range, Segment::Result { written, path }))
    })
}
