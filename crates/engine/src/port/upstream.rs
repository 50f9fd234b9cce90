//! A back-end that answers canonical requests.

use std::fmt;
use std::sync::Arc;

use futures::stream::BoxStream;
use ir::{Event, Request};

/// The events of one attempt. Whatever goes wrong, opening included, arrives as [`Event::Error`]; a
/// stream that ends without [`Event::Finish`] was cut. Dropping the stream cancels the call.
pub type Events = BoxStream<'static, Event>;

/// Who a back-end is, for plans, logs and `meta.model`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    pub name: String,
    pub kind: String,
    pub model: Option<String>,
}

impl Backend {
    /// `provider/model`, the way `meta.model` spells it.
    pub fn label(&self) -> String {
        let model = self.model.as_deref().unwrap_or(&self.name);
        format!("{}/{model}", self.kind)
    }
}

pub trait Upstream: Send + Sync + fmt::Debug {
    fn backend(&self) -> &Backend;

    /// Starts an attempt. Returns at once: connecting is part of the stream.
    fn open(&self, request: Arc<Request>) -> Events;

    /// Tokens of a text as the back-end's own model counts them; `None` where that is not known without
    /// asking.
    fn count_tokens(&self, _text: &str) -> Option<usize> {
        None
    }
}
