//! Token counts of requests, and the check against the module's limit. The model's tokenizer is used where
//! every back-end has it locally; elsewhere an estimate that errs on the high side: one token per three
//! bytes, which is more than common tokenizers count for prose and code, and about what they count for
//! Chinese and Japanese.

use std::sync::Arc;

use ir::{Part, Request};
use module::envelope::ErrorBody;
use module::{Code, Module};
use tenancy::Tenant;

use crate::admission::Admission;
use crate::engine::Engine;
use crate::fleet::Fleet;
use crate::port::Upstream;
use crate::relay::RelayFailure;

/// Bytes of text per estimated token.
const BYTES_PER_TOKEN: usize = 3;

/// Refuses a request that is longer than `runtime_requirements.max_input_tokens`.
pub(crate) fn admit(module: &Module, request: &Request, fleet: &Fleet) -> Result<(), Box<ErrorBody>> {
    let Some(limit) = module.manifest.runtime.max_input_tokens else {
        return Ok(());
    };
    let (actual, estimated) = count(request, fleet);
    if actual as u64 <= limit {
        return Ok(());
    }
    let about = if estimated { "about " } else { "" };
    let message = format!("the request has {about}{actual} tokens, and the module allows {limit}");
    let error = ErrorBody::new(Code::E1005, message)
        .detail("stage", "input")
        .detail("limit", "tokens")
        .detail("allowed", limit)
        .detail("actual", actual)
        .detail("estimated", estimated);
    Err(Box::new(error))
}

/// The length of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenCount {
    pub tokens: u64,
    /// Neither a vendor's count nor a tokenizer was available.
    pub estimated: bool,
}

impl Engine {
    /// Token count of a request for the back-end that would answer it: the vendor's count, the tokenizer's
    /// count of the texts, or an estimate. It is accounted as a call without tokens, since no model read them.
    pub async fn count_tokens(
        &self,
        tenant: &Tenant,
        request: Arc<Request>,
        admission: Admission,
    ) -> Result<TokenCount, Box<RelayFailure>> {
        let Admission { client, permit, .. } = admission;
        let _permit = permit;
        let mut account = self.open_count(tenant, &request, client).await?;
        let backend = self.counting_backend(&request).await;
        account.backend = backend.as_ref().map(|(name, _)| name.clone());
        let counted = match backend {
            Some((_, upstream)) => exact_count(upstream.as_ref(), &request).await,
            None => None,
        };
        account.is_counted = true;
        let estimate = || {
            let bytes: usize = texts(&request).map(str::len).sum();
            bytes.div_ceil(BYTES_PER_TOKEN) as u64
        };
        Ok(TokenCount {
            tokens: counted.unwrap_or_else(estimate),
            estimated: counted.is_none(),
        })
    }

    /// The back-end that would answer the request, with its name.
    async fn counting_backend(&self, request: &Arc<Request>) -> Option<(String, Arc<dyn Upstream>)> {
        let fleet = self.fleet();
        let plan = fleet.explain(request, 0, 0, self.runs.monotonic_ms());
        let first = plan.ok()?.selected.into_iter().next()?;
        let mut candidates = fleet.candidates().iter();
        let member =
            candidates.position(|candidate| candidate.name == first.name && candidate.key == first.key)?;
        // A chat with a URL that may not be fetched is sent to no back-end, not even to be counted.
        self.media().check_urls(request).await.ok()?;
        Some((first.name, fleet.upstream(member)?.clone()))
    }
}

async fn exact_count(upstream: &dyn Upstream, request: &Arc<Request>) -> Option<u64> {
    if let Some(tokens) = upstream.count_request(request.clone()).await {
        return Some(tokens);
    }
    let counted = texts(request).map(|text| upstream.count_tokens(text));
    counted.sum::<Option<usize>>().map(|tokens| tokens as u64)
}

fn texts(request: &Request) -> impl Iterator<Item = &str> {
    request
        .as_chat()
        .into_iter()
        .flat_map(|chat| &chat.messages)
        .flat_map(|message| message.parts.iter().filter_map(Part::as_text))
}

/// Token count of the texts of a request, and whether it is an estimate.
fn count(request: &Request, fleet: &Fleet) -> (usize, bool) {
    let texts: Vec<&str> = texts(request).collect();
    let counted = texts
        .iter()
        .map(|text| fleet.count_tokens(text))
        .sum::<Option<usize>>();
    match counted {
        Some(count) => (count, false),
        None => {
            let bytes: usize = texts.iter().map(|text| text.len()).sum();
            (bytes.div_ceil(BYTES_PER_TOKEN), true)
        }
    }
}
