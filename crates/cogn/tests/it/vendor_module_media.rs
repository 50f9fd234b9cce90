//! Media in messages to `module:NAME`: each item is assigned to the matching field of the module, or refused
//! with a reason.

use std::fs;

use ir::Dialect;
use ir::media::Base64;
use serde_json::{Value, json};

use crate::harness::{REPLY, Server, Stage};
use crate::openai_unary::wav;
use crate::vendor_client::{DIALECTS, ask, body_of, error_of};

const PICTURE: &[u8] = include_bytes!("../../../../examples/modules/image-analyzer/assets/sunset.png");

/// One empty page.
fn pdf() -> Vec<u8> {
    let objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>",
    ];
    let mut text = String::from("%PDF-1.4\n");
    let mut table = String::from("xref\n0 4\n0000000000 65535 f \n");
    for (number, object) in (1..).zip(objects) {
        table += &format!("{:010} 00000 n \n", text.len());
        text += &format!("{number} 0 obj\n{object}\nendobj\n");
    }
    let at = text.len();
    text += &format!("{table}trailer\n<</Size 4/Root 1 0 R>>\nstartxref\n{at}\n%%EOF\n");
    text.into_bytes()
}

fn base64(bytes: &[u8]) -> String {
    String::from(Base64::from_bytes(bytes).as_str())
}

/// A module that accepts these kinds of media, with these input fields.
fn module(stage: &Stage, name: &str, kinds: &str, fields: &Value) {
    let folder = stage.path("modules").join(name);
    fs::create_dir_all(&folder).unwrap();
    let manifest = format!(
        "name: {name}\nversion: 1.0.0\nresponsibility: look\ntier: decision\nexcludes: [guessing]\n\
         modalities: {{input: [{kinds}]}}\nresponse: {{mode: both}}\n"
    );
    fs::write(folder.join("module.yaml"), manifest).unwrap();
    fs::write(folder.join("prompt.md"), "Look at $MEDIA_INPUTS. $ARGUMENTS\n").unwrap();
    let schema = json!({
        "$defs": {"media": {
            "type": "object", "required": ["type"], "additionalProperties": false,
            "properties": {"type": {}, "url": {}, "data": {}, "media_type": {}}
        }},
        "input": {"type": "object", "properties": fields},
        "data": {"type": "object", "required": ["rationale"], "properties": {"rationale": {"type": "string"}}}
    });
    fs::write(folder.join("schema.json"), schema.to_string()).unwrap();
}

fn serve(stage: &Stage) -> Server {
    let one = json!({"$ref": "#/$defs/media"});
    let many = json!({"type": "array", "items": one});
    module(
        stage,
        "looker",
        "text, image, audio, document",
        &json!({
            "note": {"type": "string"}, "pictures": many, "recording": one, "paper": one
        }),
    );
    module(
        stage,
        "comparer",
        "text, image",
        &json!({"image_before": one, "image_after": one}),
    );
    stage.serve(&[&stage.script("sees", &json!([{"reply": REPLY}]))])
}

fn picture(dialect: Dialect) -> Value {
    let data = base64(PICTURE);
    let url = format!("data:image/png;base64,{data}");
    match dialect {
        Dialect::Anthropic => {
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
        }
        Dialect::OpenaiResponses => json!({"type": "input_image", "image_url": url, "detail": "low"}),
        _ => json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}}),
    }
}

fn document(dialect: Dialect) -> Value {
    let data = base64(&pdf());
    let url = format!("data:application/pdf;base64,{data}");
    match dialect {
        Dialect::Anthropic => {
            json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}})
        }
        Dialect::OpenaiResponses => json!({"type": "input_file", "filename": "a.pdf", "file_data": url}),
        _ => json!({"type": "file", "file": {"filename": "a.pdf", "file_data": url}}),
    }
}

fn words(dialect: Dialect, text: &str) -> Value {
    let kind = match dialect {
        Dialect::OpenaiResponses => "input_text",
        _ => "text",
    };
    json!({"type": kind, "text": text})
}

fn message(dialect: Dialect, module: &str, parts: &[Value]) -> Value {
    let model = format!("module:{module}");
    let messages = json!([{"role": "user", "content": parts}]);
    match dialect {
        Dialect::OpenaiResponses => json!({"model": model, "input": messages}),
        Dialect::Anthropic => json!({"model": model, "max_tokens": 100, "messages": messages}),
        _ => json!({"model": model, "messages": messages}),
    }
}

/// The input fields that the run received.
async fn seen(server: &Server, dialect: Dialect, parts: &[Value]) -> Value {
    let response = ask(server, dialect, &message(dialect, "looker", parts)).await;
    let body = body_of(response).await;
    assert_eq!(body["cogn"]["ok"], true, "{dialect}: {body}");
    body["cogn"]["meta"]["media_validation"].clone()
}

#[tokio::test]
async fn media_is_assigned_to_the_matching_field() {
    let stage = Stage::new();
    let server = serve(&stage);
    for dialect in DIALECTS {
        let parts = [
            words(dialect, r#"{"note": "look"}"#),
            picture(dialect),
            document(dialect),
            picture(dialect),
        ];
        let found = seen(&server, dialect, &parts).await.to_string();
        assert_eq!(found.matches("image/png").count(), 2, "{dialect}: {found}");
        assert_eq!(found.matches("application/pdf").count(), 1, "{dialect}: {found}");
        // Free text, or none, next to an image.
        for more in [vec![], vec![words(dialect, "what is this?")]] {
            let parts = [vec![picture(dialect)], more].concat();
            let found = seen(&server, dialect, &parts).await.to_string();
            assert_eq!(found.matches("image/png").count(), 1, "{dialect}: {found}");
        }
    }
    let sound = json!({"type": "input_audio", "input_audio": {"data": base64(&wav(1)), "format": "wav"}});
    let found = seen(&server, Dialect::OpenaiChat, &[sound]).await.to_string();
    assert!(found.contains("audio/wav"), "{found}");
}

#[tokio::test]
async fn media_without_a_matching_field_is_refused_with_available_fields() {
    let stage = Stage::new();
    let server = serve(&stage);
    for dialect in DIALECTS {
        let refused = async |module: &str, parts: &[Value]| {
            let response = ask(&server, dialect, &message(dialect, module, parts)).await;
            assert_eq!(response.status(), 400, "{dialect}");
            error_of(dialect, &body_of(response).await).1
        };
        let why = refused("comparer", &[picture(dialect)]).await;
        assert!(why.contains("image_before, image_after"), "{dialect}: {why}");
        let why = refused("comparer", &[document(dialect)]).await;
        assert!(why.contains("accepts no document"), "{dialect}: {why}");
        let why = refused("looker", &[document(dialect), document(dialect)]).await;
        assert!(why.contains("`paper` accepts one item"), "{dialect}: {why}");
        let why = refused("counter", &[words(dialect, "x"), picture(dialect)]).await;
        assert!(why.contains("accepts no image"), "{dialect}: {why}");
        // A JSON text with explicit fields is still used as the input.
        let named = json!({"type": "base64", "media_type": "image/png", "data": base64(PICTURE)});
        let text = json!({"image_before": named, "image_after": named}).to_string();
        let asked = message(dialect, "comparer", &[words(dialect, &text)]);
        assert_eq!(ask(&server, dialect, &asked).await.status(), 200, "{dialect}");
    }
}
