//! Resolves names in mappings and conditions, in this order: a field of the data source, a field of its
//! `data`, a step of the composition, the input of the composition.

use std::borrow::Cow;

use serde_json::Value;

use super::results::Results;
use crate::expression::{Path, PathSegment, Variables, select};

#[derive(Clone, Copy, Debug)]
pub(super) struct ExpressionScope<'a> {
    pub(super) results: &'a Results,
    pub(super) input: &'a Value,
    /// The source of the data, if there is exactly one.
    pub(super) source: Option<&'a Value>,
    /// The step that finished successfully last.
    pub(super) current: Option<&'a str>,
}

impl Variables for ExpressionScope<'_> {
    fn find(&self, path: &Path) -> Option<Cow<'_, Value>> {
        let segments = &path.segments;
        let Some(PathSegment::Name(name)) = segments.first() else {
            return select(self.source.unwrap_or(self.input), segments);
        };
        let rest = segments.get(1..).unwrap_or_default();
        if let Some(source) = self.source {
            let inner = source.get("data").filter(|_| source.get("ok").is_some());
            for root in [Some(source), inner].into_iter().flatten() {
                if root.get(name).is_some() || is_length(segments) {
                    return select(root, segments);
                }
            }
        }
        if let Some(envelope) = self.results.get(name) {
            return select(envelope, rest).filter(|_| !envelope.is_null());
        }
        match name.as_str() {
            "input" => select(self.input, rest),
            "current" => select(self.results.get(self.current?)?, rest),
            _ if self.source.is_none() => select(self.input, segments),
            _ => None,
        }
    }
}

/// `$.length` is the length of the source itself.
fn is_length(segments: &[PathSegment]) -> bool {
    matches!(segments, [PathSegment::Name(name)] if name == "length")
}
