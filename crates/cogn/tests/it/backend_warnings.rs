//! Warnings about adapted requests, as the caller of a module receives them.

use serde_json::{Value, json};
use testkit::http::{MockServer, ScriptedResponse};

use crate::harness::{REPLY, Stage, assemble};

fn warnings(envelope: &Value) -> Vec<(String, String, String)> {
    let text = |warning: &Value, key: &str| String::from(warning[key].as_str().unwrap_or_default());
    let entries = envelope["_warnings"].as_array().cloned().unwrap_or_default();
    entries
        .iter()
        .map(|one| (text(one, "code"), text(one, "reason"), text(one, "message")))
        .collect()
}

#[test]
fn adapted_request_is_warned_once_whole_and_streamed() {
    let piece = json!({"choices": [{"index": 0, "delta": {"content": REPLY}, "finish_reason": "stop"}]});
    let body = format!("data: {piece}\n\ndata: [DONE]\n\n");
    let upstream = MockServer::with_responses(ScriptedResponse::good("text/event-stream", body));
    let stage = Stage::new();
    let run = |features: &str, more: &[&str]| {
        stage.configure(&format!(
            "[[backends]]\nname = \"b\"\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\nfeatures = [{features}]\n",
            upstream.url("/v1")
        ));
        let mut command = stage.cogn();
        command.args(["run", "counter", "--set", "text=two words", "--json"]);
        let output = command.args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let adapted =
        "/payload/response_format: the back-end does not enforce a schema; the schema is in the prompt";
    let expected = [("W4001", "adapted", adapted)]
        .map(|(code, reason, message)| (String::from(code), String::from(reason), String::from(message)));
    let unstreamed: Value = serde_json::from_str(&run("\"supports_stream\"", &[])).unwrap();
    assert_eq!(warnings(&unstreamed), expected);
    let streamed = assemble(&run("\"supports_stream\"", &["--stream"]));
    assert!(streamed.violations.is_empty(), "{:?}", streamed.violations);
    assert_eq!(warnings(&streamed.envelope), expected);
    // No warning without an adaptation.
    let able: Value =
        serde_json::from_str(&run("\"supports_stream\", \"supports_json_schema\"", &[])).unwrap();
    assert_eq!(warnings(&able), []);
}
