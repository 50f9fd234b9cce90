//! All limits of this crate. Exceeding one is a diagnostic or an error, never a crash and never a silent
//! truncation.

/// Largest text file of a module that is read (manifest, prompt, schema, one test case).
pub const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How many bytes of an asset are read to detect its type.
pub const HEAD_BYTES: usize = 16;
/// Maximum number of files in one module folder that are checked.
pub const FILES_MAX: usize = 2_000;
/// Deepest folder below a module's root that is searched.
pub const FOLDER_DEPTH_MAX: usize = 8;
/// Deepest nesting of JSON documents; serde_json stops at the same depth.
pub const NESTING_MAX: usize = 127;
/// Deepest nesting of YAML documents. The parser recurses, and its frames are large without optimisation.
pub const YAML_NESTING_MAX: usize = 64;
/// Most nodes in one YAML document, aliases expanded.
pub const YAML_NODES_MAX: usize = 100_000;
/// Maximum number of diagnostics stored for one module; the rest is counted.
pub const DIAGNOSTICS_MAX: usize = 200;
/// Largest reply of a model that is parsed as a whole.
pub const REPLY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How many bytes a search for objects in a reply may scan, per byte of the reply ...
pub const REPLY_SCAN_FACTOR: usize = 8;
/// ... plus this constant, so that short replies never reach the limit.
pub const REPLY_SCAN_BASE: usize = 64 * 1024;
/// Maximum number of objects of one reply that are considered; the latest are kept.
pub const REPLY_OBJECTS_MAX: usize = 64;
/// Longest unquoted key that is recognised in an object that is not quite JSON.
pub const REPLY_KEY_BYTES_MAX: usize = 64;
/// Maximum number of schema errors listed in one error.
pub const ERRORS_LISTED_MAX: usize = 20;
/// Maximum number of enum values listed in a message.
pub const ENUM_VALUES_LISTED_MAX: usize = 20;
/// Longest `custom` value of an extensible enum, in code points.
pub const CUSTOM_CHARS_MAX: usize = 32;
/// Deepest level of data that is searched for items with a confidence.
pub const AGGREGATION_DEPTH_MAX: usize = 6;
/// Shortest text of an answer that is compared with the texts of the prompt, in code points.
pub const COPIED_CHARS_MIN: usize = 20;
/// How many tokens at the end of a text must be one cycle for the text to count as repeating itself.
pub const REPETITION_TOKENS: usize = 256;
/// Longest cycle of such a text, in tokens.
pub const REPETITION_CYCLE_MAX: usize = 64;
/// Maximum number of references followed in sequence inside a schema.
pub const REFERENCE_HOPS_MAX: usize = 16;
/// Upper limit of insights in any module.
pub const INSIGHTS_MAX: u64 = 20;
/// Longest `meta.explain`, in code points.
pub const EXPLAIN_CHARS_MAX: usize = 280;
/// Length of an explanation taken from a rationale, in code points.
pub const EXPLAIN_CHARS_TAKEN: usize = 200;
/// Maximum number of chunk fingerprints stored to check that a resumed stream repeats the same chunks.
pub const RESENT_CHUNKS_MAX: usize = 65_536;
/// Longest key of a streamed document.
pub const KEY_BYTES_MAX: usize = 64 * 1024;
/// Longest number of a streamed document.
pub const NUMBER_BYTES_MAX: usize = 4 * 1024;
/// Maximum text buffered before a document has certainly begun.
pub const LEAD_BYTES_MAX: usize = 4 * 1024;
/// A snapshot of all data waits for new text of at least the size of the last one divided by this.
pub const SNAPSHOT_SHARE: usize = 8;
/// Deepest nesting of a condition in a composition.
pub const EXPRESSION_DEPTH_MAX: usize = 32;
/// Maximum number of modules that are followed when a composition is checked.
pub const COMPOSITION_MODULES_MAX: usize = 1_000;
/// Longest argument list of an `@call`, in bytes.
pub const CALL_BYTES_MAX: usize = 4_096;
/// Maximum number of steps in one composition.
pub const COMPOSITION_STEPS_MAX: usize = 64;
/// Maximum number of steps of one composition that run in parallel.
pub const COMPOSITION_PARALLEL_MAX: usize = 8;
/// Timeout of an `@call` if neither the call nor the requirement sets one.
pub const CALL_TIMEOUT_MS: u64 = 30_000;
/// Longest text of a context that reaches a model, in code points.
pub const CONTEXT_TEXT_CHARS_MAX: usize = 10_000;
/// Maximum number of mismatches reported for one golden test.
pub const MISMATCHES_MAX: usize = 20;
/// Maximum depth and number of fields counted for test coverage.
pub const COVERED_DEPTH_MAX: usize = 8;
pub const COVERED_FIELDS_MAX: usize = 2_000;
/// Maximum number of JSON values in one schema.
pub const SCHEMA_NODES_MAX: usize = 10_000;
/// Maximum size of one schema: its texts, and the pointers of all its values.
pub const SCHEMA_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum number of references in one schema.
pub const SCHEMA_REFERENCES_MAX: usize = 1_000;
/// Longest chain of schemas that apply to the same value, each by a reference or by a keyword like `allOf`.
pub const SCHEMA_PATH_MAX: u64 = 64;
/// Maximum number of definitions of one schema, with other targets of its references.
pub const SCHEMA_DEFINITIONS_MAX: usize = 500;
/// Maximum number of patterns in one schema.
pub const SCHEMA_PATTERNS_MAX: usize = 200;
/// Longest pattern of a schema with its repetitions written out, in characters.
pub const SCHEMA_REPETITION_MAX: usize = 2_000;
/// Maximum size of one compiled pattern, in bytes.
pub const SCHEMA_PATTERN_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of steps back while one pattern is matched.
pub const SCHEMA_BACKTRACKS_MAX: usize = 10_000;
/// How often a schema may evaluate one value.
pub const SCHEMA_COST_MAX: u64 = 5_000;
/// How many evaluations one application of a schema may need ...
pub const SCHEMA_STEPS_MAX: u64 = 2_000_000;
/// ... or this many per value of the instance, if that is more.
pub const SCHEMA_STEPS_PER_VALUE_MAX: u64 = 32;
/// How many evaluations an application may need whose errors are listed.
pub const SCHEMA_LISTED_STEPS_MAX: u64 = 200_000;
