use std::path::{Path, PathBuf};

use ir::operation::Operation;
use serde_json::{Value, json};

use super::layer::{Layer, Origin};
use super::schema::SCHEMA;
use super::settings::Settings;
use super::settings::gate::GateAction;
use super::{Merged, Preset, Sources, problems};

const EXAMPLE: &str = r#"
[[credentials]]
name = "openai"
env = "OPENAI_API_KEY"
[[backends]]
name = "fast"
kind = "openai"                      # openai | anthropic | gemini | ollama | local | scripted
base_url = "http://127.0.0.1:9100/v1"   # the URL before /chat/completions (for anthropic before /v1/messages)
model = "mock"                       # optional binding
credential = "openai"                # optional
operations = ["chat_completions"]    # optional: each kind has defaults
features = ["supports_stream", "supports_json_schema"]
weight = 100
priority = 10                        # higher is tried first
[routing]
policy = "ewma_latency"              # or a table: { name = "hedged", k = 2, delay_ms = 50 }
"#;

/// Every section and nearly every key.
const MORE: &str = r#"
[[credentials]]
name = "second"
file = "keys/second"
[[backends]]
name = "pool"
kind = "gemini"
credentials = ["openai", "second"]
features_disabled = ["supports_tools"]
region = "eu"
price = { input_usd = 0.25, output_usd = 1.0 }
limits = { inflight = 4, requests_per_minute = 60 }
timeouts = { first_byte_ms = 5 }
headers = { "x-title" = "mine" }
[[backends]]
name = "spare"
kind = "ollama"
default_model = "small"
[[backends]]
name = "inside"
kind = "local"
[[backends]]
name = "program"
kind = "command"
operations = ["text_to_speech"]
[backends.command]
argv = ["./speak", "{script}", "--voice={voice}", "--speed={speed}", "-f", "{format}", "{input}", "{output}"]
script = "print()"
input = "text"
reply = "bytes"
json_pointer = ""
voice = "en"
voices = { nova = "en+f3" }
language = "en"
languages = ["en"]
formats = ["wav", "mp3"]
speed_unit = 160
env = ["PYTHONPATH"]
set_env = { OMP_NUM_THREADS = "1" }
processes_max = 2
queue_max = 4
output_bytes_max = 1000000
memory_bytes_max = 1000000000
[[backends]]
name = "played"
kind = "scripted"
script = "played.yaml"
[routing]
policy = { name = "hedged", k = 2, delay_ms = 50 }
allow = ["fast", "pool"]
deny = ["spare"]
[network]
proxy = "socks5h://127.0.0.1:1080"
proxy_credential = "second"
no_proxy = ["localhost"]
ca_files = ["ca.pem"]
[gate]
min_confidence = 0.8
max_risk = "medium"
backend = "pool"
action = "rerun"
[gate.modules.summarize]
min_confidence = 0.5
action = "review"
[media]
fetch = "allowlist"
allow = ["*.example.org"]
private_hosts = ["media.lan:8080"]
roots = ["pictures"]
oversize = "downscale"
normalise = false
inline_accept_max = 1000000
store_threshold = 1024
store_max = 1048576
folder = "spool"
"#;

fn layer(name: &str, text: &str) -> Layer {
    Layer::of_toml(Path::new(name), text).unwrap_or_else(|(message, _)| panic!("{message}"))
}

/// Merges the texts like files, in order of increasing priority, over the built-in defaults.
pub(super) fn merged(texts: &[(&str, &str)]) -> Merged {
    let mut defaults = Sources::default().merge().expect("the defaults are good");
    // The back-end that is added without configuration.
    defaults
        .tree
        .retain(|key, _| key != "backends" && key != "credentials");
    let mut layers = vec![Layer {
        tree: defaults.tree,
        origins: Default::default(),
    }];
    layers.extend(texts.iter().map(|(name, text)| layer(name, text)));
    Merged::of(layers)
}

fn found(texts: &[(&str, &str)]) -> Vec<(String, String, Option<String>)> {
    let problems = problems(&merged(texts)).expect("the schema compiles");
    problems
        .into_iter()
        .map(|problem| (problem.key, problem.message, problem.hint))
        .collect()
}

#[test]
fn defaults_are_valid() {
    assert_eq!(found(&[]), []);
}

#[test]
fn full_example_is_valid() {
    assert_eq!(found(&[("cogn.toml", EXAMPLE)]), []);
}

#[test]
fn deserialises_all_sections() {
    let merged = merged(&[
        (
            "here/cogn.toml",
            &format!("{EXAMPLE}\n").replace("[routing]\npolicy", "# policy"),
        ),
        ("there/cogn.toml", MORE),
    ]);
    assert_eq!(problems(&merged).expect("the schema compiles"), []);
    let settings = Settings::of(&merged).expect("it is good");
    let [_, pool, _, _, program, played] = settings.backends.as_slice() else {
        panic!("{:?}", settings.backends)
    };
    assert_eq!(pool.keys(), ["openai", "second"]);
    assert_eq!(pool.price().unwrap().together_usd(), Some(1.25));
    let features = pool.features();
    let has = |word: &str| features.iter().any(|feature| feature.as_str() == word);
    assert!(has("supports_json_schema") && has("supports_system_role") && !has("supports_tools"));
    let timeouts = settings.timeouts.with(pool.timeouts);
    assert_eq!((timeouts.first_byte_ms, timeouts.idle_ms), (5, 60_000));
    // Paths are relative to the folder of their file.
    assert_eq!(played.script, Some(PathBuf::from("there/played.yaml")));
    assert_eq!(program.program().expect("a program").called(), "there/./speak");
    assert_eq!(settings.network.ca_files, [PathBuf::from("there/ca.pem")]);
    let rule = settings.gate.for_module("summarize").expect("a rule");
    assert_eq!(
        (rule.min_confidence, rule.action),
        (Some(0.5), Some(GateAction::Review))
    );
    assert_eq!(rule.max_risk.as_deref(), Some("medium"));
    let host = settings.routing.host().expect("a policy");
    assert_eq!(host.policy.map(|policy| policy.name()), Some("hedged"));
}

#[test]
fn schema_enums_match_code() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let backend = &schema["properties"]["backends"]["items"]["properties"];
    let words = |list: &Value| -> Vec<String> { serde_json::from_value(list.clone()).expect("words") };
    let features = words(&backend["features"]["items"]["enum"]);
    for feature in ir::Feature::all() {
        assert!(features.iter().any(|word| word == feature.as_str()), "{feature}");
    }
    for word in &features {
        let feature = ir::Feature::from(word.clone());
        assert!(!matches!(feature, ir::Feature::Other(_)), "{word}");
    }
    // No back-end offers realtime voice.
    let operations = Operation::ALL
        .into_iter()
        .filter(|one| *one != Operation::RealtimeVoice);
    let operations: Vec<_> = operations.map(Operation::as_str).collect();
    assert_eq!(words(&backend["operations"]["items"]["enum"]), operations);
    let text = "[[backends]]\nname = \"x\"\nkind = \"openai\"\noperations = [\"realtime_voice\"]\n";
    let problems = found(&[("cogn.toml", text)]);
    assert!(
        matches!(&problems[..], [(key, ..)] if key.contains("operations")),
        "{problems:?}"
    );
    let policy = &schema["properties"]["routing"]["properties"]["policy"];
    for word in words(&policy["then"]["enum"]) {
        let text = format!("[routing]\npolicy = {{ name = \"{word}\", mirror_to = \"fast\" }}\n");
        assert_eq!(found(&[("a.toml", EXAMPLE), ("b.toml", &text)]), [], "{word}");
    }
    for kind in words(&backend["kind"]["enum"]) {
        let script = match kind.as_str() {
            "scripted" => "script = \"a\"",
            "command" => "preset = \"espeak-ng\"",
            _ => "",
        };
        let text = format!("[[backends]]\nname = \"x\"\nkind = \"{kind}\"\n{script}\n");
        let merged = merged(&[("cogn.toml", &text)]);
        let settings = Settings::of(&merged).expect("it is good");
        assert_eq!(settings.backends[0].kind.as_str(), kind);
    }
    let presets: Vec<_> = Preset::all().iter().map(|preset| preset.name).collect();
    assert_eq!(words(&backend["preset"]["enum"]), presets);
}

#[test]
fn reports_violations_of_cross_section_rules() {
    let cases = [
        ("[routing]\npolicy = \"hegded\"\n", "routing.policy", "hedged"),
        (
            "[routing]\npolicy = { name = \"mirror\" }\n",
            "routing.policy",
            "mirror_to",
        ),
        ("[routing]\nallow = [\"fats\"]\n", "routing.allow.0", "fats"),
        ("[gate]\nmin_confidence = 2\n", "gate.min_confidence", "2"),
        ("[gate]\naction = \"rerun\"\n", "gate.action", "backend"),
        ("[gate]\nbackend = \"strong\"\n", "gate.backend", "strong"),
        (
            "[network]\nproxy = \"http://me:pass@p\"\n",
            "network.proxy",
            "proxy_credential",
        ),
        (
            "[network]\nproxy_credential = \"x\"\n",
            "network.proxy_credential",
            "x",
        ),
        ("[[credentials]]\nname = \"x\"\n", "credentials.x", "env"),
        (
            "[[backends]]\nname = \"s\"\nkind = \"scripted\"\n",
            "backends.s",
            "script",
        ),
        (
            "[[backends]]\nname = \"fast\"\ncredentials = [\"openai\"]\n",
            "backends.fast.credential",
            "combined",
        ),
        (
            "[[backends]]\nname = \"fast\"\nheaders = { Authorization = \"Bearer x\" }\n",
            "backends.fast.headers.Authorization",
            "credential",
        ),
        (
            "[[backends]]\nname = \"fast\"\nfeatures = [\"supports_tool\"]\n",
            "backends.fast.features.0",
            "supports_tools",
        ),
    ];
    for (text, key, word) in cases {
        let found = found(&[("a.toml", EXAMPLE), ("b.toml", text)]);
        let fits = |(at, message, hint): &(String, String, Option<String>)| {
            at == key && (message.contains(word) || hint.as_deref().is_some_and(|hint| hint.contains(word)))
        };
        assert!(found.iter().any(fits), "{text}: {found:?}");
    }
}

#[test]
fn variable_overrides_named_backend() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cogn.toml");
    std::fs::write(&file, EXAMPLE.replace("\"fast\"", "\"very-fast\"")).expect("it can be written");
    let variables = [
        ("COGN_BACKENDS__VERY_FAST__WEIGHT", "0"),
        ("COGN_ROUTING__POLICY", "{ name = \"hedged\", k = 3 }"),
        ("COGN_MEDIA__FETCH", "off"),
    ];
    let variables = variables.map(|(name, value)| (String::from(name), String::from(value)));
    let sources = Sources {
        files: vec![file],
        variables: variables.to_vec(),
        ..Sources::default()
    };
    let merged = sources.merge().expect("it merges");
    assert_eq!(problems(&merged).expect("the schema compiles"), []);
    assert_eq!(merged.tree["backends"][0]["weight"], json!(0));
    assert_eq!(merged.tree["routing"]["policy"]["k"], json!(3));
    assert_eq!(merged.tree["media"]["fetch"], json!("off"));
    let variable = Origin::Environment(String::from("COGN_BACKENDS__VERY_FAST__WEIGHT"));
    assert_eq!(merged.origin("/backends/0/weight"), Some(&variable));
}

#[test]
fn uses_embedded_model_without_configuration() {
    let merged = Sources::default().merge().expect("it merges");
    assert_eq!(
        merged.tree["backends"],
        json!([{"name": "local", "kind": "local"}])
    );
}

#[test]
fn detects_vendors_by_environment_variables() {
    let vendors = [
        ("GOOGLE_API_KEY", "k"),
        ("OLLAMA_HOST", "0.0.0.0"),
        ("OLLAMA_MODEL", "llama3"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/"),
        ("DEEPSEEK_API_KEY", "k"),
    ];
    let sources = Sources {
        vendors: vendors.map(|(name, value)| (name, String::from(value))).to_vec(),
        ..Sources::default()
    };
    let merged = sources.merge().expect("it merges");
    assert_eq!(problems(&merged).expect("the schema compiles"), []);
    let backends = merged.tree["backends"].as_array().expect("a list");
    let named = |name: &str| {
        let found = backends.iter().find(|backend| backend["name"] == name);
        found.unwrap_or_else(|| panic!("{name} is not in {backends:?}"))
    };
    assert_eq!(named("gemini")["credential"], json!("gemini"));
    assert_eq!(named("ollama")["base_url"], json!("http://127.0.0.1:11434"));
    assert_eq!(named("ollama")["default_model"], json!("llama3"));
    // The default model does not apply to another URL.
    assert_eq!(named("anthropic")["base_url"], json!("http://127.0.0.1:9"));
    assert_eq!(named("anthropic").get("default_model"), None);
    assert_eq!(
        named("deepseek")["features_disabled"][0],
        json!("supports_json_schema")
    );
}

#[test]
fn later_layer_overrides_single_value_of_named_item() {
    let merged = merged(&[
        ("a.toml", EXAMPLE),
        ("b.toml", "[[backends]]\nname = \"fast\"\nweight = 0\n"),
    ]);
    let backend = &merged.tree["backends"][0];
    assert_eq!(merged.tree["backends"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&backend["weight"], &backend["priority"]),
        (&json!(0), &json!(10))
    );
    let place = |pointer: &str| match merged.origin(pointer) {
        Some(Origin::File { path, location }) => (path.clone(), location.line),
        other => panic!("{other:?}"),
    };
    assert_eq!(place("/backends/0/weight"), (PathBuf::from("b.toml"), 3));
    assert_eq!(place("/backends/0/priority"), (PathBuf::from("a.toml"), 14));
}

#[test]
fn replaces_unnamed_lists() {
    let other = "[[backends]]\nname = \"fast\"\nfeatures = []\n";
    let merged = merged(&[("a.toml", EXAMPLE), ("b.toml", other)]);
    assert_eq!(merged.tree["backends"][0]["features"], json!([]));
}

#[test]
fn suggests_nearest_key_for_misspelling() {
    let text = EXAMPLE.replace("weight", "wieght");
    let expected = (
        String::from("backends.fast.wieght"),
        String::from("unknown key `wieght`"),
        Some(String::from("did you mean `weight`?")),
    );
    assert_eq!(found(&[("cogn.toml", &text)]), [expected]);
}

#[test]
fn reports_all_problems_at_once() {
    let text = "[timeouts]\nidle_ms = \"long\"\n[[backends]]\nname = \"x\"\nkind = \"opanai\"\ncredential = \"missing\"\n[timouts]\n";
    let keys: Vec<_> = found(&[("cogn.toml", text)])
        .into_iter()
        .map(|(key, ..)| key)
        .collect();
    for key in [
        "timeouts.idle_ms",
        "backends.x.kind",
        "backends.x.credential",
        "timouts",
    ] {
        assert!(keys.iter().any(|found| found == key), "{key} not in {keys:?}");
    }
}

#[test]
fn other_databases_are_refused() {
    let text = "[store]\nmetadata = \"postgres://cogn@127.0.0.1/cogn\"\n";
    let (key, message, _) = found(&[("cogn.toml", text)]).remove(0);
    assert_eq!(key, "store.metadata");
    assert_eq!(message, "PostgreSQL is not supported; use sqlite:FILE");
    let text = "[store]\nmetadata = \"sqlite:other.db\"\n";
    assert_eq!(found(&[("cogn.toml", text)]), []);
}

#[test]
fn variables_override_files_and_defaults() {
    let variables = [("COGN_TIMEOUTS__IDLE_MS", "5")];
    let variables = variables
        .map(|(name, value)| (String::from(name), String::from(value)))
        .to_vec();
    let merged = Sources {
        variables,
        ..Sources::default()
    }
    .merge()
    .expect("it merges");
    assert_eq!(merged.tree["timeouts"]["idle_ms"], json!(5));
    let variable = Origin::Environment(String::from("COGN_TIMEOUTS__IDLE_MS"));
    assert_eq!(merged.origin("/timeouts/idle_ms"), Some(&variable));
    assert_eq!(merged.origin("/timeouts/total_ms"), Some(&Origin::Default));
}

#[test]
fn ignores_vendor_variables_if_backends_are_configured() {
    let vendors = vec![("OPENAI_API_KEY", String::from("sk-secret"))];
    let merged = Sources {
        vendors: vendors.clone(),
        ..Sources::default()
    }
    .merge()
    .expect("it merges");
    assert_eq!(merged.tree["backends"][0]["kind"], json!("openai"));
    assert_eq!(
        merged.tree["credentials"],
        json!([{"name": "openai", "env": "OPENAI_API_KEY"}])
    );
    assert!(
        !Value::Object(merged.tree.clone())
            .to_string()
            .contains("sk-secret")
    );
    assert_eq!(problems(&merged).expect("the schema compiles"), []);

    let variables = vec![(String::from("COGN_BACKENDS"), String::from("[]"))];
    let merged = Sources {
        vendors,
        variables,
        ..Sources::default()
    }
    .merge()
    .expect("it merges");
    assert_eq!(merged.tree["backends"], json!([]));
}

#[test]
fn invalid_toml_error_contains_line() {
    let (_, at) =
        Layer::of_toml(Path::new("cogn.toml"), "[timeouts]\nidle_ms = \n").expect_err("it is broken");
    assert_eq!(at.line, 2);
}
