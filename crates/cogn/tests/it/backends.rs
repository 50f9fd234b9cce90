//! `cogn backends` and `cogn backends check` against scripted servers and a real llama-server.

use ir::Dialect;
use serde_json::{Value, json};
use testkit::http::scripted;
use testkit::llama_server::Llama;

use crate::openai_unary::vendor;
use crate::workspace::Workspace;

fn place(config: &str) -> Workspace {
    let workspace = Workspace::new();
    std::fs::write(workspace.path().join("cogn.toml"), config).expect("it can be written");
    workspace
}

fn back_end(name: &str, kind: &str, url: &str, more: &str) -> String {
    format!(
        "[[backends]]\nname = \"{name}\"\nkind = \"{kind}\"\nbase_url = \"{url}\"\nmodel = \"m\"\n{more}\n"
    )
}

fn check(workspace: &Workspace, arguments: &[&str]) -> (i32, Value) {
    let mut all = vec!["--json", "backends", "check"];
    all.extend(arguments);
    let ran = workspace.run(&all);
    let rows = serde_json::from_str(&ran.stdout()).unwrap_or_else(|why| panic!("{why}: {}", ran.stdout()));
    (ran.code(), rows)
}

#[test]
fn list_shows_available_backends_and_reasons() {
    let config = format!(
        "[[credentials]]\nname = \"key\"\nenv = \"NOBODY_SETS_THIS\"\n{}{}{}",
        back_end(
            "keyless",
            "openai",
            "http://127.0.0.1:9/v1",
            "features = [\"supports_stream\"]"
        ),
        back_end("locked", "gemini", "http://127.0.0.1:9", "credential = \"key\""),
        "[[backends]]\nname = \"resting\"\nkind = \"ollama\"\nweight = 0\n",
    );
    let workspace = place(&config);
    let ran = workspace.run(&["--json", "backends"]);
    assert_eq!(ran.code(), 0);
    let rows: Value = serde_json::from_str(&ran.stdout()).expect("JSON");
    assert_eq!(rows[0]["available"], json!(true));
    assert_eq!(
        rows[0]["features"],
        json!(["supports_stream", "supports_system_role"])
    );
    assert_eq!(rows[1]["available"], json!(false));
    assert_eq!(
        rows[1]["reason"],
        json!("the environment variable NOBODY_SETS_THIS is not set")
    );
    let text = workspace.run(&["backends"]).stdout();
    assert!(text.contains("keyless") && text.contains("weight 0"), "{text}");
    assert!(
        text.contains("unavailable: the environment variable NOBODY_SETS_THIS"),
        "{text}"
    );
}

#[test]
fn check_distinguishes_refused_keys_unreachable_hosts_and_wrong_features() {
    let good = scripted(
        Dialect::OpenaiChat,
        "- {match: Count, reply: 'one two three', chunk_bytes: 4}\n- {match: hello, reply: '{\"word\": \"quillfeather\"}'}\n- {reply: 'It is sunny.'}\n",
    );
    let locked = testkit::http::MockServer::with_responses(testkit::http::ScriptedResponse::response(
        "401 Unauthorized",
        &[("content-type", "application/json")],
        "{\"error\": {\"message\": \"no such key\"}}",
    ));
    let honest = "features = [\"supports_stream\", \"supports_json_schema\"]";
    let config = [
        back_end("honest", "openai", &good.url("/v1"), honest),
        back_end(
            "boastful",
            "openai",
            &good.url("/v1"),
            "features = [\"supports_tools\"]",
        ),
        back_end("locked", "anthropic", &locked.url(""), ""),
        back_end("closed", "ollama", "http://127.0.0.1:1", ""),
    ];
    let workspace = place(&config.concat());
    let (code, rows) = check(&workspace, &[]);
    assert_eq!(code, 1, "{rows:#}");
    assert_eq!(rows[0]["good"], json!(true), "{rows:#}");
    assert_eq!(rows[0]["reached"][0]["models"], json!(["scripted"]));
    let observed = |row: usize, feature: &str| {
        let features = rows[row]["features"].as_array().expect("a list");
        let found = features.iter().find(|seen| seen["feature"] == feature);
        found.expect("it was tried")["observed"].clone()
    };
    assert_eq!(observed(0, "supports_stream"), json!(true));
    assert_eq!(observed(0, "supports_json_schema"), json!(true));
    assert_eq!(observed(1, "supports_tools"), json!(false));
    assert_eq!(rows[1]["good"], json!(false));
    assert_eq!(rows[2]["reached"][0]["credentials_refused"], json!(true));
    assert_eq!(rows[2]["reached"][0]["error"]["code"], json!("E4007"));
    assert_eq!(rows[3]["reached"][0]["error"]["code"], json!("E4001"));

    let (code, rows) = check(&workspace, &["honest"]);
    assert_eq!((code, rows.as_array().map(Vec::len)), (0, Some(1)));
    let asked = good.received().len();
    let (code, _) = check(&workspace, &["honest", "--connectivity-only"]);
    assert_eq!(code, 0);
    let new: Vec<_> = good.received().split_off(asked);
    assert!(new.iter().all(|call| call.head.starts_with("GET ")), "{new:?}");
    let text = workspace.run(&["backends", "check", "boastful"]).stdout();
    assert!(
        text.contains("supports_tools: declared, but not observed"),
        "{text}"
    );
    assert_eq!(workspace.run(&["backends", "check", "honst"]).code(), 2);
}

#[test]
fn check_of_llama_server_reports_its_features() {
    let llama = Llama::shared();
    let honest = "features = [\"supports_stream\", \"supports_json_schema\"]";
    let config = format!(
        "[[backends]]\nname = \"real\"\nkind = \"openai\"\nbase_url = \"{}\"\n{honest}\n",
        llama.url("/v1")
    );
    let (code, rows) = check(&place(&config), &["--timeout", "5m"]);
    assert_eq!(code, 0, "{rows:#}");
    for seen in rows[0]["features"].as_array().expect("a list") {
        if seen["declared"] == json!(true) {
            assert_eq!(seen["observed"], json!(true), "{rows:#}");
        }
    }
}

/// Of two keys the first is refused or rate-limited: the second one is used, and the client gets no error.
#[test]
fn refused_key_falls_back_to_next_key_of_pool() {
    for status in ["401 Unauthorized", "403 Forbidden", "429 Too Many Requests"] {
        a_key_gives_way(status);
    }
}

fn a_key_gives_way(status: &'static str) {
    const REPLY: &str =
        include_str!("../../../../examples/modules/text-classifier/tests/replies/ok-plain.json");
    let reply = serde_json::from_str::<Value>(REPLY).expect("the reply is JSON");
    let body = format!(
        "data: {}\n\ndata: [DONE]\n\n",
        json!({"choices": [{"index": 0, "delta": {"content": reply.to_string()}, "finish_reason": "stop"}]})
    );
    // The key that is selected first is refused, on the first request and on later ones.
    let refused = std::sync::OnceLock::new();
    let server = testkit::http::MockServer::with_responder(move |_, asked| {
        let key = asked.header("authorization").map(String::from);
        if *refused.get_or_init(|| key.clone()) == key {
            // A run that waited for this key would never end.
            return testkit::http::ScriptedResponse::response(status, &[("retry-after", "100000")], "{}");
        }
        testkit::http::ScriptedResponse::good("text/event-stream", &body)
    });
    let pool = "[[credentials]]\nname = \"a\"\nfile = \"a\"\n[[credentials]]\nname = \"b\"\nfile = \"b\"\n";
    let back_end = back_end(
        "pool",
        "openai",
        &server.url("/v1"),
        "credentials = [\"a\", \"b\"]",
    );
    let workspace = place(&format!("{pool}{back_end}"));
    for (file, key) in [("a", "one"), ("b", "other")] {
        std::fs::write(workspace.path().join(file), key).expect("it can be written");
    }
    let modules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/modules");
    let ran = workspace.run(&[
        "--json",
        "--modules",
        modules,
        "run",
        "text-classifier",
        "--args",
        "x",
    ]);
    assert_eq!(ran.code(), 0, "{status}: {}", ran.stdout());
    let mut keys: Vec<_> = server
        .received()
        .iter()
        .filter_map(|asked| asked.header("authorization").map(String::from))
        .collect();
    keys.sort();
    assert_eq!(
        keys,
        ["Bearer one", "Bearer other"],
        "each key is used once: {status}"
    );
}

#[test]
fn each_unary_operation_is_probed_separately() {
    let good = vendor();
    let halting = testkit::http::MockServer::with_responder(|_, asked| match asked.path() {
        "/v1/models" => testkit::http::ScriptedResponse::good("application/json", "{\"data\": []}"),
        "/v1/embeddings" => crate::openai_unary::json_answer(&crate::openai_unary::vectors(1)),
        _ => testkit::http::ScriptedResponse::response(
            "404 Not Found",
            &[],
            "{\"error\": {\"message\": \"no such thing\"}}",
        ),
    });
    let all = "operations = [\"embeddings\", \"image_generation\", \"speech_to_text\", \"text_to_speech\"]";
    let config = [
        back_end("good", "openai", &good.url("/v1"), all),
        back_end("halting", "openai", &halting.url("/v1"), all),
    ];
    let workspace = place(&config.concat());
    let (code, rows) = check(&workspace, &["good"]);
    assert_eq!(code, 0, "{rows:#}");
    let works = |row: usize, operation: &str, rows: &Value| {
        let list = rows[row]["operations"].as_array().expect("a list");
        let found = list.iter().find(|tried| tried["operation"] == operation);
        found.expect("it is listed")["works"].clone()
    };
    for operation in ["embeddings", "speech_to_text", "text_to_speech"] {
        assert_eq!(works(0, operation, &rows), json!(true), "{rows:#}");
    }
    assert_eq!(
        works(0, "image_generation", &rows),
        json!(null),
        "images are not probed"
    );
    assert_eq!(rows[0]["features"], json!([]), "no back-end can be called");
    let paths: Vec<String> = good
        .received()
        .iter()
        .map(|call| String::from(call.path()))
        .collect();
    assert!(!paths.iter().any(|path| path.contains("images")), "{paths:?}");

    let (code, rows) = check(&workspace, &["halting"]);
    assert_eq!(code, 1, "{rows:#}");
    assert_eq!(works(0, "embeddings", &rows), json!(true), "{rows:#}");
    assert_eq!(works(0, "speech_to_text", &rows), json!(false), "{rows:#}");
    let text = workspace.run(&["backends", "check", "halting"]).stdout();
    assert!(
        text.contains("text_to_speech: does not work (no such thing)"),
        "{text}"
    );
    assert!(text.contains("image_generation: not tried"), "{text}");
}

/// Default operations of each kind, at the vendor's address and at another one.
#[test]
fn each_kind_has_its_default_operations() {
    let config = "[[backends]]\nname = \"cloud\"\nkind = \"openai\"\n\
                  [[backends]]\nname = \"bound\"\nkind = \"openai\"\nmodel = \"gpt-5\"\n\
                  [[backends]]\nname = \"elsewhere\"\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
                  [[backends]]\nname = \"ollama\"\nkind = \"ollama\"\n\
                  [[backends]]\nname = \"claude\"\nkind = \"anthropic\"\n";
    let ran = place(config).run(&["--json", "backends"]);
    let rows: Value = serde_json::from_str(&ran.stdout()).expect("JSON");
    let talk = json!(["chat_completions"]);
    let cloud = json!([
        "chat_completions",
        "embeddings",
        "image_generation",
        "speech_to_text",
        "text_to_speech"
    ]);
    assert_eq!(rows[0]["operations"], cloud);
    assert_eq!(rows[1]["operations"], talk);
    assert_eq!(rows[2]["operations"], talk);
    assert_eq!(rows[3]["operations"], json!(["chat_completions", "embeddings"]));
    assert_eq!(rows[4]["operations"], talk);
    let features = |row: usize| rows[row]["features"].to_string();
    assert!(features(0).contains("supports_token_input") && features(0).contains("supports_voices"));
    assert!(!features(1).contains("supports_batch") && !features(3).contains("supports_token_input"));
}
