//! Token counts of requests, and the check against the module's limit. The model's tokenizer is used where
//! every back-end has it locally; elsewhere an estimate that errs on the high side: one token per three
//! bytes, which is more than common tokenizers count for prose and code, and about what they count for
//! Chinese and Japanese.

use std::sync::Arc;

use ir::{Part, Request};
use module::envelope::ErrorBody;
use module::{Code, Module};

use crate::config::EngineConfig;
use crate::fleet::Fleet;

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

/// Token count of a request for the back-end that would answer it: the vendor's count, the tokenizer's
/// count of the texts, or an estimate.
pub(crate) async fn count_request(config: &EngineConfig, now_ms: u64, request: Arc<Request>) -> TokenCount {
    let fleet = &config.fleet;
    let plan = fleet.explain(&request, 0, 0, now_ms);
    let first = plan.ok().and_then(|plan| plan.selected.into_iter().next());
    let member = first.and_then(|first| {
        let mut candidates = fleet.candidates().iter();
        candidates.position(|candidate| candidate.name == first.name && candidate.key == first.key)
    });
    // A chat with a URL that may not be fetched is sent to no back-end, not even to be counted.
    let sendable = config.media.check_urls(&request).await.is_ok();
    let member = member.filter(|_| sendable);
    if let Some(upstream) = member.and_then(|member| fleet.upstream(member)) {
        if let Some(tokens) = upstream.count_request(request.clone()).await {
            return TokenCount {
                tokens,
                estimated: false,
            };
        }
        let counted = texts(&request).map(|text| upstream.count_tokens(text));
        if let Some(tokens) = counted.sum::<Option<usize>>() {
            return TokenCount {
                tokens: tokens as u64,
                estimated: false,
            };
        }
    }
    let bytes: usize = texts(&request).map(str::len).sum();
    TokenCount {
        tokens: bytes.div_ceil(BYTES_PER_TOKEN) as u64,
        estimated: true,
    }
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
