//! A parser of hostile input that is fuzzed has a test that counts its work for inputs of one size and of twice
//! the size, and the reverse. The work is a number of steps that the parser counts, or of bytes that it allocates.
//! A fuzz target calls `bolero::check!`; a test of linear time calls `assert_linear`,
//! or its name ends with `_in_linear_time`. The lists of exceptions may only shrink.

use std::collections::BTreeSet;

use crate::git_files;

/// Fuzz targets, each with the test that counts the work of the same parser.
const COUNTED: &[(&str, &str)] = &[
    (
        "crates/wire/src/framing/tests.rs:arbitrary_bytes_do_not_panic",
        "crates/wire/src/framing/tests.rs:framings_take_linear_time",
    ),
    (
        "crates/module/tests/it/stream_json.rs:any_bytes_are_parsed_or_rejected",
        "crates/module/src/stream/json/tests.rs:documents_are_parsed_in_linear_time",
    ),
    (
        "crates/module/tests/it/envelope_reply.rs:any_bytes_give_a_valid_envelope",
        "crates/module/src/envelope/reply.rs:replies_are_read_in_linear_time",
    ),
    (
        "crates/module/tests/it/envelope_reply.rs:any_json_like_bytes_give_a_valid_envelope",
        "crates/module/src/envelope/reply.rs:replies_are_read_in_linear_time",
    ),
    (
        "crates/module/tests/it/load_fuzz.rs:any_bytes_as_a_schema",
        "crates/module/src/schema/admission/tests.rs:schemas_are_admitted_in_linear_time",
    ),
    (
        "crates/wire/tests/it/fuzz.rs:document_decoders_accept_arbitrary_json",
        "crates/wire/tests/it/allocated_bytes.rs:bodies_are_decoded_in_linear_time",
    ),
    (
        "crates/wire/tests/it/fuzz.rs:extractor_accepts_arbitrary_input",
        "crates/wire/tests/it/allocated_bytes.rs:base64_is_extracted_in_linear_time",
    ),
    (
        "crates/wire/tests/it/fuzz.rs:media_decoders_accept_arbitrary_input",
        "crates/wire/tests/it/allocated_bytes.rs:media_and_messages_are_decoded_in_linear_time",
    ),
    (
        "crates/wire/tests/it/fuzz.rs:message_decoders_accept_arbitrary_input",
        "crates/wire/tests/it/allocated_bytes.rs:media_and_messages_are_decoded_in_linear_time",
    ),
    (
        "crates/wire/tests/it/fuzz.rs:stream_decoders_accept_arbitrary_bytes",
        "crates/wire/tests/it/allocated_bytes.rs:streams_are_decoded_in_linear_time",
    ),
    (
        "crates/wire/tests/it/gemini.rs:stream_decoder_accepts_arbitrary_bytes",
        "crates/wire/tests/it/allocated_bytes.rs:streams_are_decoded_in_linear_time",
    ),
    (
        "crates/wire/tests/it/ollama.rs:stream_decoder_accepts_arbitrary_bytes",
        "crates/wire/tests/it/allocated_bytes.rs:streams_are_decoded_in_linear_time",
    ),
];

/// Fuzz targets whose work is not counted, with the reason.
const NOT_COUNTED: &[(&str, &str)] = &[
    (
        "crates/media/tests/it/hostile.rs:fuzz",
        "files are bounded in bytes, pixels and parts",
    ),
    (
        "crates/module/tests/it/load_fuzz.rs:any_bytes_as_a_manifest",
        "files of the operator, bounded in bytes",
    ),
    (
        "crates/module/tests/it/migrate_property.rs:any_manifest_is_migrated_or_refused",
        "files of the operator, bounded in bytes",
    ),
    (
        "crates/module/tests/it/migrate_property.rs:any_schema_is_migrated_or_refused",
        "files of the operator, bounded in bytes",
    ),
    (
        "crates/module/tests/it/stream_assemble.rs:any_bytes_give_an_envelope",
        "not instrumented; lines are bounded in bytes",
    ),
    (
        "crates/module/tests/it/stream_projection.rs:any_text_is_projected_or_ignored",
        "not instrumented; its JSON parser is",
    ),
    (
        "crates/providers/src/fetch/tests/mod.rs:fuzz_targets",
        "URLs are bounded in bytes",
    ),
];

/// Tests of linear time without a fuzz target, with the reason.
const NOT_FUZZED: &[(&str, &str)] = &[
    (
        "crates/ir/src/json_field_ranges.rs:duplicates_are_found_in_linear_time",
        "a property test compares it with a parsed document",
    ),
    (
        "crates/module/src/schema/admission/tests.rs:cost_of_an_input_is_computed_in_linear_time",
        "its input is a parsed document",
    ),
    (
        "crates/module/src/envelope/reply.rs:repeated_texts_are_read_in_linear_time",
        "the parser of `replies_are_read_in_linear_time`",
    ),
    (
        "crates/wire/tests/it/allocated_bytes.rs:chats_are_converted_in_linear_time",
        "its input is what the fuzzed decoders read",
    ),
    (
        "crates/gateway/src/auth/token/tests.rs:tokens_are_checked_in_linear_time",
        "`jsonwebtoken` and `serde_json` parse tokens, which are bounded in bytes",
    ),
    (
        "crates/gateway/src/inference/multipart/tests.rs:forms_are_read_in_linear_time",
        "`multer` parses forms",
    ),
    (
        "crates/gateway/src/mcp/tests.rs:messages_are_parsed_in_linear_time",
        "`rmcp` and `serde_json` parse messages",
    ),
    (
        "crates/gateway/src/negotiate/tests.rs:accept_headers_are_read_in_linear_time",
        "headers are bounded in bytes",
    ),
];

#[test]
fn fuzzed_parsers_count_their_steps() {
    let (mut fuzzed, mut counted) = (BTreeSet::new(), BTreeSet::new());
    for path in git_files::ending(".rs") {
        if path.starts_with("crates/xtask/") {
            continue;
        }
        for (name, body) in functions(&git_files::read(&path)) {
            if body.contains("bolero::check!") {
                fuzzed.insert(format!("{path}:{name}"));
            }
            let counts = body.contains("assert_linear(") && name != "assert_linear";
            if counts || name.ends_with("_in_linear_time") {
                counted.insert(format!("{path}:{name}"));
            }
        }
    }
    let first = |list: &[(&str, &str)]| {
        list.iter()
            .map(|(name, _)| String::from(*name))
            .collect::<Vec<_>>()
    };
    let tests = COUNTED.iter().map(|(_, test)| String::from(*test));
    let listed: BTreeSet<String> = first(COUNTED).into_iter().chain(first(NOT_COUNTED)).collect();
    assert_eq!(listed, fuzzed, "listed fuzz targets, and those of the sources");
    let listed: BTreeSet<String> = tests.chain(first(NOT_FUZZED)).collect();
    assert_eq!(
        listed, counted,
        "listed tests of linear time, and those of the sources"
    );
}

/// The functions of a source file with their text, up to the next one.
fn functions(source: &str) -> Vec<(String, String)> {
    let mut functions: Vec<(String, String)> = Vec::new();
    for line in source.lines() {
        let words = line
            .trim_start()
            .trim_start_matches("pub(crate) ")
            .trim_start_matches("async ");
        if let Some(rest) = words.strip_prefix("fn ") {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            functions.push((String::from(name), String::new()));
        }
        if let Some((_, body)) = functions.last_mut() {
            body.push_str(line);
            body.push('\n');
        }
    }
    functions
}
