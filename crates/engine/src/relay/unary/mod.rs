//! Operations that answer in one piece: the request is made to fit the back-end that was chosen, asked in one
//! call or in several, and the answer says what was changed on the way. Pure but for the calls themselves.

mod adapt;
mod merge;
mod ssml;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use ir::adaptation::{Adaptation, Ledger, Component};
use ir::{Error, ErrorKind, Phase, Request};

use self::adapt::adapt;
use self::merge::merge;
use crate::limits;
use crate::port::{UnaryResponse, Upstream};
use crate::route::Candidate;

/// The answer of this back-end, behind what was changed of the request already. Dropping the future hangs up.
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
        let message = format!("more than {most} texts are not asked one by one");
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
