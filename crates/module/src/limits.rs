//! Every bound of this crate in one place. What exceeds one of them is a diagnostic or an error, never
//! a crash and never a silent cut.

/// Largest text file of a module that is read (manifest, prompt, schema, one test case).
pub const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How much of an asset is looked at to tell its type.
pub const HEAD_BYTES: usize = 16;
/// Most files in one module folder that are looked at.
pub const FILES_MAX: usize = 2_000;
/// Deepest folder below a module's root that is looked into.
pub const FOLDER_DEPTH_MAX: usize = 8;
/// Deepest nesting of JSON documents; serde_json stops at the same depth.
pub const NESTING_MAX: usize = 127;
/// Deepest nesting of YAML documents. The reader recurses, and its frames are large without optimisation.
pub const YAML_NESTING_MAX: usize = 64;
/// Most nodes in one YAML document, aliases expanded.
pub const YAML_NODES_MAX: usize = 100_000;
/// Most diagnostics kept for one module; the rest is counted.
pub const DIAGNOSTICS_MAX: usize = 200;
/// Largest reply of a model that is parsed as a whole.
pub const REPLY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How many bytes a search for objects in a reply may look at, per byte of the reply ...
pub const REPLY_SCAN_FACTOR: usize = 8;
/// ... and on top of that, so that short replies are never refused for it.
pub const REPLY_SCAN_BASE: usize = 64 * 1024;
/// Most objects of one reply that are considered; the latest are kept.
pub const REPLY_OBJECTS_MAX: usize = 64;
/// Longest unquoted key by which an object that is almost JSON is recognised.
pub const REPLY_KEY_BYTES_MAX: usize = 64;
/// Most schema errors listed in one error; the rest is only mentioned.
pub const ERRORS_LISTED_MAX: usize = 20;
/// Most values of an enum named in the message about a value that is none of them.
pub const ENUM_VALUES_LISTED_MAX: usize = 20;
/// Longest `custom` value of an extensible enum, in code points.
pub const CUSTOM_CHARS_MAX: usize = 32;
/// Deepest level of data in which items with a confidence are looked for.
pub const AGGREGATION_DEPTH_MAX: usize = 6;
/// Most references followed one after another inside a schema.
pub const REFERENCE_HOPS_MAX: usize = 16;
/// Hard cap of insights, whatever a module says.
pub const INSIGHTS_MAX: u64 = 20;
/// Longest `meta.explain`, in code points.
pub const EXPLAIN_CHARS_MAX: usize = 280;
/// Length of an explanation taken from a rationale, in code points.
pub const EXPLAIN_CHARS_TAKEN: usize = 200;
/// Most chunks of a stream that are remembered, to tell whether a resumed stream repeats them truly.
pub const RESENT_CHUNKS_MAX: usize = 65_536;
/// Longest key of a document that is read as a stream.
pub const KEY_BYTES_MAX: usize = 64 * 1024;
/// Longest number of a document that is read as a stream.
pub const NUMBER_BYTES_MAX: usize = 4 * 1024;
/// Most text that is held back while it is unsure whether a document has begun.
pub const LEAD_BYTES_MAX: usize = 4 * 1024;
/// A snapshot of all data waits until this share of the last one has come anew.
pub const SNAPSHOT_SHARE: usize = 8;
/// Deepest nesting of a condition in a composition.
pub const EXPRESSION_DEPTH_MAX: usize = 32;
/// Most modules that are followed when a composition is checked.
pub const COMPOSITION_MODULES_MAX: usize = 1_000;
/// Longest argument list of an `@call`, in bytes.
pub const CALL_BYTES_MAX: usize = 4_096;
/// Most steps of one composition.
pub const COMPOSITION_STEPS_MAX: usize = 64;
/// Most steps of one composition that run side by side.
pub const COMPOSITION_PARALLEL_MAX: usize = 8;
/// How long an `@call` may take when neither it nor the requirement says.
pub const CALL_TIMEOUT_MS: u64 = 30_000;
/// Longest text of a context that reaches a model, in code points.
pub const CONTEXT_TEXT_CHARS_MAX: usize = 10_000;
/// Most mismatches that one golden test names.
pub const MISMATCHES_MAX: usize = 20;
/// How deep fields are counted, and how many, for what tests exercise.
pub const COVERED_DEPTH_MAX: usize = 8;
pub const COVERED_FIELDS_MAX: usize = 2_000;
