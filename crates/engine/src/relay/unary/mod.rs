//! Unary operations: the request is adapted to the selected back-end and sent in one call or in several; the
//! response lists the adaptations. Only the calls themselves do IO.

mod adapt;
mod merge;
mod ssml;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use ir::adaptation::{Adaptation, Component, Ledger};
use ir::{Error, ErrorKind, Phase, Request};

use self::adapt::adapt;
use self::merge::merge;
use crate::limits;
use crate::port::{UnaryResponse, Upstream};
use crate::route::Candidate;

/// The response of this back-end, with the earlier `notices` before its adaptations. Cancelled by dropping
/// it.
pub(super) fn call(
    upstream: &Arc<dyn Upstream>,
    candidate: &Candidate,
    request: Arc<Request>,
    notices: Vec<Adaptation>,
) -> BoxFuture<'static, Result<UnaryResponse, Error>> {
    let mut ledger = Ledger::new(Component::Adapter);
    let parts = match adapt(&request, candidate, &mut ledger) {
        Some(parts) => parts,
        None if notices.is_empty() => return upstream.call(request),
        None => vec![Request::clone(&request)],
    };
    let upstream = upstream.clone();
    async move {
        let mut answer = ask(&upstream, parts).await?;
        let mut adaptations = notices;
        adaptations.extend(ledger.into_entries());
        adaptations.append(&mut answer.adaptations);
        answer.adaptations = adaptations;
        Ok(answer)
    }
    .boxed()
}

async fn ask(upstream: &Arc<dyn Upstream>, mut parts: Vec<Request>) -> Result<UnaryResponse, Error> {
    if parts.len() > limits::UNARY_BATCH_MAX {
        let most = limits::UNARY_BATCH_MAX;
        let message = format!("more than {most} texts cannot be sent in single calls");
        return Err(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message));
    }
    if parts.len() == 1
        && let Some(only) = parts.pop()
    {
        return upstream.call(Arc::new(only)).await;
    }
    let calls = parts.into_iter().map(|part| upstream.call(Arc::new(part)));
    let answers = stream::iter(calls).buffered(limits::UNARY_BATCH_CONCURRENCY);
    merge(answers.try_collect().await?)
}
