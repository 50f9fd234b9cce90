//! The headers of our own that answers carry. Each is named here once, and all of them are shown to pages: a
//! browser hides from a page whatever it is not told to show.

/// The run that answered, where it is a module's.
pub(crate) const SESSION_HEADER: &str = "x-cognitive-session";
/// Why an answer does not come in the form that was asked for.
pub(crate) const WARNING_HEADER: &str = "x-cognitive-warning";
/// The run that answered, where no module was asked.
pub(crate) const RUN_HEADER: &str = "x-cogn-run";
pub(crate) const BACKEND_HEADER: &str = "x-cogn-backend";
pub(crate) const ATTEMPTS_HEADER: &str = "x-cogn-attempts";
pub(crate) const COST_HEADER: &str = "x-cogn-cost-usd";
/// Tells a vendor's client what was left out of its request: the answer has no place for it.
pub(crate) const ADAPTED_HEADER: &str = "x-cogn-adapted";

/// All of them.
pub(crate) const OF_ANSWERS: [&str; 7] = [
    SESSION_HEADER,
    WARNING_HEADER,
    RUN_HEADER,
    BACKEND_HEADER,
    ATTEMPTS_HEADER,
    COST_HEADER,
    ADAPTED_HEADER,
];
