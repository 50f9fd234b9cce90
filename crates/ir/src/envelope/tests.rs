//! Examples of the specification round-trip; constraints beyond the types are checked.

use serde_json::{Value, json};

use super::*;
use crate::error::{Error, ErrorKind, Phase};
use crate::operation::{Feature, Operation};

fn transcription() -> Value {
    json!({
        "version": 1,
        "request_id": "req-123",
        "operation": "speech_to_text",
        "requirements": {
            "required_ops": ["speech_to_text"],
            "required_features": ["supports_audio_input"],
            "required_transports": ["http"]
        },
        "payload": {
            "model": "whisper-1",
            "audio": {"kind": "sms_file", "uri": "sms+file://01JFK...ABCD", "mime": "audio/wav"},
            "language": "zh",
            "timestamps": true
        }
    })
}

fn images() -> Value {
    json!({
        "version": 1,
        "request_id": "req-456",
        "operation": "image_generation",
        "backend": {"name": "openai-us", "instance": "openai-us-1", "latency_ms": 842},
        "result": {
            "payload": {
                "images": [{"kind": "sms_file", "uri": "sms+file://01JFK...WXYZ", "mime": "image/png"}]
            }
        }
    })
}

fn picture_in_chat() -> Value {
    json!({
        "operation": "chat_completions",
        "payload": {
            "model": "gpt-4o",
            "messages": [{
                "role": "user",
                "content_parts": [
                    {"type": "text", "text": "描述这张图片"},
                    {
                        "type": "image",
                        "image": {"kind": "sms_file", "uri": "sms+file://01J...", "mime": "image/jpeg"}
                    }
                ]
            }]
        }
    })
}

fn request(value: Value) -> Request {
    serde_json::from_value(value).unwrap()
}

#[test]
fn spec_examples_round_trip() {
    for example in [transcription(), picture_in_chat()] {
        assert_eq!(serde_json::to_value(request(example.clone())).unwrap(), example);
    }
    let response: Response = serde_json::from_value(images()).unwrap();
    assert_eq!(serde_json::to_value(response).unwrap(), images());
}

#[test]
fn requirements_are_derived_from_payload() {
    let needs = request(transcription()).needs();
    for feature in [Feature::AudioInput, Feature::Timestamps, Feature::Language] {
        assert!(needs.required_features.contains(&feature), "{feature}");
    }
    let needs = request(picture_in_chat()).needs();
    assert!(needs.required_features.contains(&Feature::ImageInput));
    assert!(needs.required_ops.contains(&Operation::ChatCompletions));

    // The type of the format decides, not the nesting of the schema.
    let mut chat = picture_in_chat();
    chat["payload"]["response_format"] = json!({"type": "json_schema", "schema": {}});
    chat["payload"]["tools"] = json!([{"name": "f"}]);
    chat["payload"]["generation"] = json!({"stream": true});
    let needs = request(chat).needs();
    for feature in [Feature::JsonSchema, Feature::Tools, Feature::Stream] {
        assert!(needs.required_features.contains(&feature), "{feature}");
    }
}

#[test]
fn unknown_fields_round_trip_at_every_level() {
    let mut example = picture_in_chat();
    example["tomorrow"] = json!({"a": 1});
    example["extra"] = json!({"b": 2});
    example["routing"] = json!({"backend": "x", "new_hint": true});
    example["policy"] = json!({"name": "hedged", "k": 2});
    example["payload"]["top_secret_knob"] = json!(3);
    example["payload"]["messages"][0]["content_parts"][0]["shade"] = json!("red");
    example["payload"]["messages"][0]["content_parts"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "hologram", "beam": 7}));
    assert_eq!(serde_json::to_value(request(example.clone())).unwrap(), example);
}

#[test]
fn content_and_content_parts_are_exclusive() {
    let both = json!({"role": "user", "content": "a", "content_parts": []});
    assert!(serde_json::from_value::<crate::Message>(both).is_err());
    for message in [
        json!({"role": "user", "content": "a"}),
        json!({"role": "assistant", "content": null}),
        json!({"role": "user", "content": [{"type": "text", "text": "a"}]}),
        json!({"role": "user", "content_parts": [{"type": "text", "text": "a"}]}),
    ] {
        let read: crate::Message = serde_json::from_value(message.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), message);
    }
}

#[test]
fn unknown_version_is_refused_with_supported_versions() {
    let mut example = transcription();
    example["version"] = json!(9);
    let error = request(example).check().unwrap_err();
    assert!(error.message.contains("supported: [1]"), "{}", error.message);
    let mut example = transcription();
    example["requirements"]["required_ops"] = json!(["embeddings"]);
    assert!(request(example).check().is_err());
}

#[test]
fn numeric_request_id_is_accepted() {
    let mut example = transcription();
    example["request_id"] = json!(17);
    assert_eq!(request(example).request_id, "17");
}

#[test]
fn result_has_either_payload_or_error() {
    let mut both = images();
    both["result"]["error"] = json!({"code": "Timeout", "message": "m"});
    assert!(serde_json::from_value::<Response>(both).is_err());
    let mut failed = images();
    failed["result"] = json!({"error": {
        "code": "NoCandidateBackend", "message": "none", "retryable": false, "operation": "image_generation",
        "candidates_checked": ["a"], "rejected_reasons": {"a": "no mask"}
    }});
    let failed: Response = serde_json::from_value(failed).unwrap();
    let Outcome::Error(error) = &failed.result else {
        panic!("not an error")
    };
    assert_eq!(error.kind, ErrorKind::NoCandidate);
    let again = serde_json::to_value(&failed).unwrap();
    assert_eq!(again["result"]["error"]["code"], "NoCandidateBackend");
    assert_eq!(again["result"]["error"]["rejected_reasons"]["a"], "no mask");
}

#[test]
fn error_facts_survive_both_encodings() {
    let mut error = Error::new(ErrorKind::RateLimited, Phase::BeforeFirstByte, "slow down").with_status(429);
    error.retry_after_ms = Some(1500);
    error.operation = Some(Operation::Embeddings);
    let json = serde_json::to_value(&error).unwrap();
    assert_eq!(json["code"], "RateLimited");
    assert_eq!(json["retryable"], true);
    assert_eq!(error.cognitive_code(), "E4002");
    assert_eq!(serde_json::from_value::<Error>(json).unwrap(), error);
}

/// The raw response is included only on request, as the original JSON.
#[test]
fn raw_response_is_json_and_absent_by_default() {
    let text = r#"{"version":1,"request_id":"r","operation":"embeddings","result":{"error":{"code":"Timeout","message":"late","retryable":true}}}"#;
    let mut response: Response = serde_json::from_str(text).unwrap();
    assert!(serde_json::to_value(&response).unwrap().get("raw").is_none());
    response.raw = Some(json!({"id": "x", "choices": []}));
    assert_eq!(
        serde_json::to_value(&response).unwrap()["raw"],
        json!({"id": "x", "choices": []})
    );
}
