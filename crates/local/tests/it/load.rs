use ir::{ErrorKind, Part};
use local::{LocalUpstream, Options};

use crate::harness::{ask, chat, options, small};

#[test]
fn invalid_weights_are_an_error_not_a_crash() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bad.gguf");
    let whole = std::fs::read(testkit::language_model::small_model()).expect("weights");
    let mut scrambled = whole[..200_000].to_vec();
    for byte in scrambled.iter_mut().skip(8).step_by(7) {
        *byte ^= 0xA5;
    }
    let cases: [(&str, &[u8]); 5] = [
        ("text", b"<html>404</html>"),
        ("empty", b""),
        ("head", b"GGUF\x03\0\0\0"),
        ("cut", &whole[..1_000_000]),
        ("scrambled", &scrambled),
    ];
    for (name, bytes) in cases {
        std::fs::write(&path, bytes).expect("written");
        let local = LocalUpstream::new(&Options::new("embedded", "bad", &path));
        for _ in 0..2 {
            let error = ask(&local, chat("hello")).error.expect(name);
            assert_eq!(error.kind, ErrorKind::NotEnabled, "{name}");
            assert_eq!(error.cognitive_code(), "E4001");
            assert!(error.message.contains("bad.gguf"), "{error}");
        }
    }
    let gone = LocalUpstream::new(&Options::new("embedded", "gone", folder.path().join("gone.gguf")));
    let error = ask(&gone, chat("hello")).error.expect("an error");
    assert!(error.message.contains("cogn models pull"), "{error}");
}

/// The grammar is built by recursion.
#[test]
fn schema_beyond_a_limit_is_refused_before_the_weights_are_loaded() {
    let next = |index: usize| serde_json::json!({"$ref": format!("#/$defs/d{index}")});
    let mut definitions = serde_json::json!({"d30": {"type": "integer"}});
    for index in 0..30 {
        let twice = [next(index + 1), next(index + 1)];
        definitions[format!("d{index}")] = serde_json::json!({"allOf": twice});
    }
    let mut schema = next(0);
    schema["$defs"] = definitions;
    let mut request = chat("hello");
    request.response_format = Some(ir::ResponseFormat::JsonSchema {
        name: None,
        description: None,
        schema: schema.into(),
        strict: None,
    });
    let local = LocalUpstream::new(&Options::new("embedded", "none", "none.gguf"));
    let error = ask(&local, request).error.expect("an error");
    assert_eq!(error.kind, ErrorKind::InvalidRequest);
    assert!(error.message.contains("schema_cost_max"), "{error}");
}

#[test]
fn oversize_prompt_is_refused_before_evaluation() {
    let mut options = options();
    options.context_tokens = 256;
    let local = LocalUpstream::new(&options);
    let error = ask(&local, chat(&"word ".repeat(2000))).error.expect("an error");
    assert_eq!(error.kind, ErrorKind::ContextWindow);
    assert_eq!(error.cognitive_code(), "E1005");
    assert!(error.message.contains("tokens"), "{error}");
    // The back-end still serves the next call.
    assert!(ask(&local, chat("hello")).error.is_none());
}

#[test]
fn answer_ends_at_context_limit() {
    let mut options = options();
    options.context_tokens = 256;
    let mut request = chat("Tell me a story without an end.");
    request.generation.max_tokens = None;
    request.response_format = Some(ir::ResponseFormat::JsonObject);
    let answer = ask(&LocalUpstream::new(&options), request);
    assert!(answer.error.is_none(), "{answer:?}");
    let usage = answer.usage.expect("usage");
    assert!(
        usage.total_tokens().is_some_and(|total| total <= 256),
        "{usage:?}"
    );
}

#[test]
fn two_models_answer_concurrently() {
    let folder = tempfile::tempdir().expect("a folder");
    let second = folder.path().join("second.gguf");
    std::fs::copy(testkit::language_model::small_model(), &second).expect("copied");
    let mut options = options();
    options.path = second;
    options.model = String::from("second");
    let (one, two) = (small(), LocalUpstream::new(&options));
    let answers = std::thread::scope(|scope| {
        let one = scope.spawn(|| ask(&one, chat("Name a fruit.")));
        let two = scope.spawn(|| ask(&two, chat("Name a fruit.")));
        [one.join().expect("no panic"), two.join().expect("no panic")]
    });
    assert!(answers.iter().all(|answer| answer.error.is_none()), "{answers:?}");
    assert_eq!(
        answers[0].text, answers[1].text,
        "the same weights give the same answer"
    );
}

#[test]
fn unsupported_features_are_errors() {
    let mut request = chat("hello");
    request.tools = vec![
        serde_json::from_value(serde_json::json!({"name": "f", "parameters": {"type": "object"}}))
            .expect("a tool"),
    ];
    let error = ask(&small(), request).error.expect("an error");
    assert_eq!(
        (error.kind, error.cognitive_code()),
        (ErrorKind::Unsupported, "E4011")
    );
    let mut request = chat("hello");
    let media = serde_json::json!({"type": "image", "url": "https://example.com/a.png"});
    if let Ok(part) = serde_json::from_value::<Part>(media) {
        request.messages[1].parts.push(part);
        let error = ask(&small(), request).error.expect("an error");
        assert_eq!(error.kind, ErrorKind::Unsupported);
    }
}
