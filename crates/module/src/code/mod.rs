//! The registry of error (E) and warning (W) codes: name, HTTP status, recoverability and suggestion.
//! Envelopes, HTTP responses, documentation pages and `cogn explain` read this table; the runtime cannot emit
//! a code that is not in it.

use std::fmt;

/// Whether the same call may succeed later or with other input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recoverable {
    Yes,
    No,
    /// Depends on the occurrence; `no` if the caller cannot decide.
    Depends,
}

/// One row of the registry.
#[derive(Debug, PartialEq, Eq)]
pub struct CodeEntry {
    pub code: &'static str,
    pub name: &'static str,
    pub http_status: u16,
    pub recoverable: Recoverable,
    pub summary: &'static str,
    /// What a caller can do; used as `error.suggestion` unless the occurrence has its own.
    pub suggestion: &'static str,
}

/// A registered code; cheap to copy and compare. Unregistered codes cannot be constructed.
#[derive(Clone, Copy)]
pub struct Code(&'static CodeEntry);

impl Code {
    /// Finds a code by its number (`E1000`) or its name (`PARSE_ERROR`), or a legacy spelling.
    pub fn find(text: &str) -> Option<Self> {
        TABLE
            .iter()
            .find(|entry| entry.code == text || (entry.name == text && entry.code.starts_with('E')))
            .map(Self)
            .or_else(|| legacy(text))
    }

    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(Self)
    }

    pub fn as_str(self) -> &'static str {
        self.0.code
    }

    pub fn name(self) -> &'static str {
        self.0.name
    }

    pub fn http_status(self) -> u16 {
        self.0.http_status
    }

    pub fn recoverable(self) -> Recoverable {
        self.0.recoverable
    }

    pub fn summary(self) -> &'static str {
        self.0.summary
    }

    pub fn suggestion(self) -> &'static str {
        self.0.suggestion
    }

    pub fn is_warning(self) -> bool {
        self.0.code.starts_with('W')
    }
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.0.code == other.0.code
    }
}

impl Eq for Code {}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0.code, self.0.name)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.code)
    }
}

/// Whether `text` has the form of a module's own error code (E5000 to E9999).
pub fn is_module_specific(text: &str) -> bool {
    let bytes = text.as_bytes();
    matches!(bytes, [b'E', b'5'..=b'9', rest @ ..] if rest.len() == 3 && rest.iter().all(u8::is_ascii_digit))
}

/// The HTTP status for any code string an envelope may carry: registered, legacy or module-specific.
pub fn http_status(text: &str) -> u16 {
    match Code::find(text) {
        Some(code) => code.http_status(),
        None => 422,
    }
}

/// Codes that this version never emits, with the capability that will produce them. A test finds an emission of
/// every other code.
pub const PENDING: &[(Code, &str)] = &[
    (Code::E4015, "budgets"),
    (Code::W4011, "replacing media by its text"),
];

/// Spellings from before numbered codes that existing modules still return.
fn legacy(text: &str) -> Option<Code> {
    Some(match text {
        "SCHEMA_VALIDATION_FAILED" => Code::E3001,
        "UNSUPPORTED_LANGUAGE" => Code::E1004,
        "NO_SIMPLIFICATION_POSSIBLE" => Code::E2004,
        "BEHAVIOR_CHANGE_REQUIRED" => Code::E2005,
        _ => return None,
    })
}

macro_rules! registry {
    ($($code:ident $name:ident $status:literal $recoverable:ident $summary:literal => $suggestion:literal;)*) => {
        static TABLE: &[CodeEntry] = &[$(CodeEntry {
            code: stringify!($code),
            name: stringify!($name),
            http_status: $status,
            recoverable: Recoverable::$recoverable,
            summary: $summary,
            suggestion: $suggestion,
        }),*];

        registry!(@consts 0usize; $($code)*);
    };
    (@consts $index:expr; $code:ident $($rest:ident)*) => {
        impl Code {
            pub const $code: Code = Code(&TABLE[$index]);
        }
        registry!(@consts $index + 1usize; $($rest)*);
    };
    (@consts $index:expr;) => {};
}

registry! {
    E1000 PARSE_ERROR 400 No "the text is not the required JSON object"
        => "return one JSON object and no other text";
    E1001 INVALID_INPUT 400 Yes "the input does not match the module's input schema"
        => "correct the fields named in details and send the request again";
    E1002 MISSING_REQUIRED_FIELD 400 Yes "a required field is missing"
        => "add the field named in details";
    E1003 TYPE_MISMATCH 400 Yes "a field has the wrong type"
        => "change the field named in details to the type that the schema requires";
    E1004 UNSUPPORTED_VALUE 400 Depends "a value is not supported by the module"
        => "use one of the values named in the schema";
    E1005 INPUT_TOO_LARGE 413 Yes "the input exceeds a limit of the module or the server"
        => "shorten the input or split it into several calls";
    E1006 INVALID_REFERENCE 400 Yes "a path, id or pointer does not resolve"
        => "check that the reference exists and is accessible";
    E1010 UNSUPPORTED_MEDIA_TYPE 415 Yes "the module does not accept this kind of media"
        => "convert the media to one of the types the module lists under modalities";
    E1011 MEDIA_TOO_LARGE 413 Yes "the media exceeds a limit of size, duration, pages or count"
        => "shrink, shorten or split the media to the limit in details.allowed";
    E1012 MEDIA_FETCH_FAILED 424 Yes "the media could not be fetched from its URL"
        => "check that the URL is public and reachable, or send the media inline";
    E1013 MEDIA_DECODE_FAILED 400 Yes "the media could not be decoded"
        => "check the base64 text and that the file is complete";
    E1014 MEDIA_TYPE_MISMATCH 400 Yes "the bytes do not match the declared media type"
        => "declare the type in details.detected_type, or send the intended file";
    E1015 MEDIA_DIMENSION_EXCEEDED 400 Yes "the image is wider or higher than allowed"
        => "scale the image down to the limit in details";
    E1016 MEDIA_DIMENSION_TOO_SMALL 400 Yes "the image is smaller than allowed"
        => "send an image of at least the size in details";
    E1017 MEDIA_PIXEL_LIMIT 400 Yes "the image has more pixels than allowed"
        => "scale the image down";
    E1019 UPLOAD_NOT_FOUND 404 Yes "no such upload"
        => "send the media inline, or as a URL";
    E1020 CHECKSUM_MISMATCH 400 Yes "the bytes do not match their checksum"
        => "send the bytes again, or correct the checksum";
    E2001 LOW_CONFIDENCE 422 Yes "the confidence of the answer is below the required threshold"
        => "give more context, or use a stronger back-end";
    E2002 TIMEOUT 504 Depends "no answer within the timeout"
        => "try again, or raise the timeout";
    E2003 TOKEN_LIMIT 422 Yes "the model stopped at its token limit"
        => "raise the output limit or request a shorter answer";
    E2004 NO_ACTION_POSSIBLE 422 No "the module found no applicable action for this input"
        => "check that the input is the intended one";
    E2005 SEMANTIC_CONFLICT 422 Depends "the task contradicts the module's contract"
        => "change the request to match the module's contract";
    E2006 AMBIGUOUS_INPUT 422 Yes "the input has more than one interpretation"
        => "state the intended interpretation";
    E2007 INSUFFICIENT_CONTEXT 422 Yes "the input lacks context that the task requires"
        => "add the missing context to the input";
    E2010 STREAM_INTERRUPTED 502 Depends "the stream was interrupted before its end"
        => "resume the stream from the last sequence number";
    E2011 STREAM_TIMEOUT 504 Yes "the stream exceeded its total or idle timeout"
        => "resume the stream, or raise the limit in details";
    E2012 REPETITION 422 Yes "the model repeated the same text without end"
        => "run again with another temperature, or use a larger model";
    E3001 OUTPUT_SCHEMA_VIOLATION 500 No "the answer does not match the module's output schema"
        => "run again, or use a back-end that supports structured output";
    E3002 PARTIAL_RESULT 500 Depends "only part of the work succeeded"
        => "use partial_data, or repeat the parts named in details.failed";
    E3003 MISSING_RATIONALE 500 No "the answer has no data.rationale"
        => "require a rationale in the prompt, then run again";
    E3004 OVERFLOW_LIMIT 500 No "the answer contains more insights than the module allows"
        => "raise overflow.max_items in module.yaml, or request fewer in the prompt";
    E3005 INVALID_ENUM 500 No "the answer uses an enum value that the module does not allow"
        => "add the value to the schema, or set enums.strategy to extensible";
    E3006 CONSTRAINT_VIOLATION 500 No "the answer violates a rule of its module or tier"
        => "see details for the rule; run again or have a person review the case";
    E4000 INTERNAL_ERROR 500 No "internal error in cogn"
        => "report this with the run id";
    E4001 PROVIDER_UNAVAILABLE 503 Yes "no back-end returned an answer"
        => "try again, or configure a second back-end for failover";
    E4002 RATE_LIMITED 429 Yes "too many requests"
        => "wait for retry_after_ms, then try again";
    E4003 CONTEXT_OVERFLOW 500 Depends "the input exceeds the model's context window"
        => "shorten the input or choose a model with a longer context";
    E4004 CIRCULAR_DEPENDENCY 500 No "modules call each other in a cycle"
        => "remove one of the calls in the cycle named in the message";
    E4005 MAX_DEPTH_EXCEEDED 500 No "modules call each other too deeply"
        => "flatten the composition, or raise composition.max_depth";
    E4006 MODULE_NOT_FOUND 404 Yes "no such module"
        => "check the name with `cogn list`";
    E4007 PERMISSION_DENIED 403 No "these credentials do not permit the request"
        => "use a key whose scopes cover this";
    E4008 ENDPOINT_NOT_FOUND 404 No "no such endpoint"
        => "check the path and the method; GET /v1/modules lists what can be run";
    E4009 RESOURCE_NOT_FOUND 404 No "no such resource"
        => "check the id; resources of other owners are not visible";
    E4010 STREAMING_NOT_SUPPORTED 406 No "streaming was required but is not supported"
        => "leave out `_options.strict`, or call a module whose response.mode allows streaming";
    E4011 MULTIMODAL_NOT_SUPPORTED 501 No "no back-end accepts this media"
        => "configure a back-end that supports it, or send text";
    E4013 SESSION_EXPIRED 410 No "the run to resume no longer exists"
        => "start a new run";
    E4014 CHECKPOINT_INVALID 409 Yes "the checkpoint does not match what was sent"
        => "drop the partial data and resume without a checkpoint";
    E4015 BUDGET_EXHAUSTED 402 No "the budget is exhausted"
        => "raise the budget, or wait for the next period";
    E4016 PROVIDER_QUOTA_EXHAUSTED 402 No "the provider refused the call: the quota or credit of its key is exhausted"
        => "add credit at the provider, or configure a second back-end for failover";
    W1001 CONTEXT_LEFT_OUT 200 No "context that the module does not accept was dropped"
        => "add the type to context.accepts in module.yaml, or do not send it";
    W1002 FIELD_UNUSED 200 No "an input field reached no request of the run"
        => "add the field to the prompt of the module, or do not send it";
    W1011 INLINE_MEDIA_LARGE 200 No "large media was sent inline"
        => "send a URL, if this server fetches media";
    W1015 MEDIA_ADAPTED 200 No "the image was scaled or converted to fit the limits"
        => "send an image within the limits, or set media.oversize to refuse";
    W2001 LOW_CONFIDENCE 200 No "the confidence of the answer is below the threshold for decisions"
        => "have a person review the answer, or use a stronger back-end";
    W2003 ANSWER_SHORTENED 200 No "the answer was closed at the token limit"
        => "raise the output limit or request a shorter answer; the last fields may be truncated";
    W3001 CONFIDENCE_AGGREGATION_MISMATCH 200 No "the value of meta.confidence is not the declared aggregate of the items"
        => "recompute the confidence, or drop confidence_aggregation";
    W3002 STEP_LEFT_OUT 200 No "an optional step of a composition failed and was skipped"
        => "check the step named in the warning; the answer was produced without it";
    W4001 BACKEND_REMARK 200 No "the back-end did not follow the request in every detail"
        => "see the message; use a back-end that supports the requested features";
    W4006 MODULE_REPLACED 200 No "a module of a composition was replaced by its fallback, or is missing"
        => "install the module that the warning names, or drop it from the composition";
    W4010 STREAMING_UNAVAILABLE 200 No "streaming was requested, but a complete answer was returned"
        => "call a module and a back-end that support streaming";
    W4011 MULTIMODAL_DEGRADED 200 No "media was replaced by its text"
        => "configure a back-end that accepts the media";
    W4013 SESSION_RESTARTED 200 No "the run to resume no longer existed; a new one was started"
        => "drop the partial data";
    W4014 CHECKPOINT_MISMATCH 200 No "the checkpoint did not match; the stream restarts from the beginning"
        => "drop the partial data";
}

#[cfg(test)]
mod tests;
