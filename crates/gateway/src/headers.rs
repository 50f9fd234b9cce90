//! Response headers of this server. Each is named here once, and all are exposed through CORS, because a
//! browser hides unlisted headers from a page.

/// Id of a module run.
pub(crate) const SESSION_HEADER: &str = "x-cognitive-session";
/// Why the response mode differs from the requested one.
pub(crate) const WARNING_HEADER: &str = "x-cognitive-warning";
/// Id of a relayed call.
pub(crate) const RUN_HEADER: &str = "x-cogn-run";
pub(crate) const BACKEND_HEADER: &str = "x-cogn-backend";
pub(crate) const ATTEMPTS_HEADER: &str = "x-cogn-attempts";
pub(crate) const COST_HEADER: &str = "x-cogn-cost-usd";
/// Adaptations of the request, for vendor formats without a field for them.
pub(crate) const ADAPTED_HEADER: &str = "x-cogn-adapted";

/// All of the above.
pub(crate) const OF_ANSWERS: [&str; 7] = [
    SESSION_HEADER,
    WARNING_HEADER,
    RUN_HEADER,
    BACKEND_HEADER,
    ATTEMPTS_HEADER,
    COST_HEADER,
    ADAPTED_HEADER,
];
