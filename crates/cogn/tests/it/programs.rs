//! Commands as back-ends of the configuration: validation, availability and answers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{REPLY, Stage, data, input};
use crate::speech::RECIPES;
use crate::workspace::Workspace;

fn place(config: &str) -> Workspace {
    let workspace = Workspace::new();
    fs::write(workspace.path().join("cogn.toml"), config).expect("it can be written");
    workspace
}

fn program(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::write(&path, text).expect("it can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
}

/// Every problem that `cogn config check` finds, as one text.
fn problems(config: &str) -> String {
    let ran = place(config).run(&["config", "check"]);
    assert_ne!(ran.code(), 0, "{config}");
    format!("{}{}", ran.stdout(), ran.stderr())
}

#[test]
fn presets_list_their_operations() {
    testkit::speech::require_tts();
    let rows = place(RECIPES).run(&["--json", "backends"]).json();
    assert_eq!(rows[0]["kind"], "command");
    assert_eq!(rows[0]["operations"], json!(["text_to_speech"]));
    assert_eq!(rows[0]["available"], true, "{rows}");
    assert_eq!(rows[1]["operations"], json!(["speech_to_text"]));
    let features = rows[0]["features"].as_array().expect("features");
    assert!(features.contains(&json!("supports_voices")), "{rows}");
}

#[test]
fn missing_program_is_reported_with_install_hint() {
    let config = "[[backends]]\nname = \"voice\"\nkind = \"command\"\npreset = \"espeak-ng\"\n\
                  [backends.command]\nargv = [\"no-such-program\", \"{input}\"]\n";
    let workspace = place(config);
    let row = workspace.run(&["--json", "backends"]).json()[0].clone();
    assert_eq!(row["available"], false);
    assert!(
        row["reason"]
            .as_str()
            .expect("a reason")
            .contains("no-such-program"),
        "{row}"
    );
    assert!(
        row["hint"]
            .as_str()
            .expect("a hint")
            .contains("apt-get install espeak-ng"),
        "{row}"
    );
    let text = workspace.run(&["doctor"]).stdout();
    assert!(
        text.contains("no-such-program") && text.contains("espeak-ng"),
        "{text}"
    );
}

#[test]
fn missing_dependency_is_found_by_probing() {
    // A python3 that exists, without the required module.
    let workspace = place(
        "[[backends]]\nname = \"ear\"\nkind = \"command\"\npreset = \"pocketsphinx\"\n\
         [backends.command]\nargv = [\"./python3\", \"{script}\", \"{input}\"]\n",
    );
    program(workspace.path(), "python3", "#!/bin/sh\nexit 1\n");
    let listed = workspace.run(&["--json", "backends"]).json();
    assert_eq!(listed[0]["available"], true, "{listed}");
    let ran = workspace.run(&["--json", "backends", "check"]);
    assert_eq!(ran.code(), 1);
    let why = ran.json()[0]["unavailable"].clone();
    assert!(
        why.as_str()
            .expect("a reason")
            .contains("pip install pocketsphinx"),
        "{why}"
    );
    let text = workspace.run(&["doctor"]).stdout();
    assert!(text.contains("pip install pocketsphinx"), "{text}");
}

#[test]
fn invalid_command_is_refused_at_its_position() {
    let back_end = |more: &str| format!("[[backends]]\nname = \"p\"\nkind = \"command\"\n{more}\n");
    for (config, said) in [
        (
            back_end(""),
            "either `preset` or `command` with `argv` is required",
        ),
        (back_end("preset = \"espeak\""), "did you mean `espeak-ng`?"),
        (back_end("command = { argv = [\"x\"] }"), "set it in `operations`"),
        (
            back_end("operations = [\"embeddings\", \"chat_completions\"]\ncommand = { argv = [\"x\"] }"),
            "set it in `operations`",
        ),
        (
            back_end("operations = [\"embeddings\"]\ncommand = { argv = [\"x\", \"{imput}\"] }"),
            "`{imput}` in an argument is not a known placeholder",
        ),
        (
            back_end("operations = [\"text_to_speech\"]\ncommand = { argv = [\"x\", \"-v\", \"{voice}\"] }"),
            "set `voice`",
        ),
        (
            back_end("operations = [\"embeddings\"]\ncommand = { argv = [\"x\"], memory = 1 }"),
            "unknown key `memory`",
        ),
        (
            back_end("preset = \"espeak-ng\"\ncommand = { set_env = { API_KEY = \"x\" } }"),
            "secrets are not allowed here",
        ),
        (
            String::from("[[backends]]\nname = \"o\"\nkind = \"openai\"\npreset = \"espeak-ng\"\n"),
            "`preset` is valid only for kind `command`",
        ),
    ] {
        let found = problems(&config);
        assert!(found.contains(said), "{config}\n{found}");
    }
}

/// Runs call a chat command like any other back-end, also with streaming. The command sees only allowed
/// variables of the environment.
#[tokio::test]
async fn command_answers_a_run() {
    let stage = Stage::new();
    let text = format!(
        "#!/bin/sh\ngrep -q 'two words' || exit 3\ntest -z \"$PROBE_SECRET\" || exit 4\ntest \"$PROBE_ALLOWED\" = yes || exit 5\n\
         cat <<'END'\n{REPLY}\nEND\n"
    );
    program(&stage.path(""), "counts", &text);
    let config = stage.config(
        "[[backends]]\nname = \"mine\"\nkind = \"command\"\noperations = [\"chat_completions\"]\n\
         command = { argv = [\"./counts\"], env = [\"PROBE_ALLOWED\"] }\n",
    );
    let mut command = stage.serving(&["--config", &config], &[]);
    command.env("PROBE_SECRET", "hidden").env("PROBE_ALLOWED", "yes");
    let server = crate::harness::Server::spawn(command);
    let response = server
        .execute("counter", &input())
        .send()
        .await
        .expect("an answer");
    let envelope: Value = serde_json::from_slice(&response.bytes().await.expect("a body")).expect("JSON");
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert_eq!(envelope["data"], data());
    assert_eq!(envelope["meta"]["model"], "command/mine");
}

#[test]
fn encoder_is_pulled_listed_used_only_for_embeddings_and_removed() {
    let workspace = Workspace::new();
    let folder = testkit::embedding_model::small_encoder().display().to_string();
    let ran = workspace.run(&["models", "pull", &folder, "--name", "all-minilm-l6-v2", "--json"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let pulled = ran.json();
    assert_eq!(
        pulled["sha256"],
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    );
    let path = pulled["path"].as_str().expect("a path");
    let shelf = Path::new(path).parent().expect("a folder");
    let mut here: Vec<_> = fs::read_dir(shelf)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    here.sort();
    let name = |extension: &str| format!("all-minilm-l6-v2.{extension}");
    let all = ["config.json", "json", "safetensors", "tokenizer.json"].map(name);
    assert_eq!(here, all);
    let listed = workspace.run(&["models", "list", "--json"]).json();
    let row = |listed: &Value| {
        let rows = listed.as_array().expect("rows").clone();
        rows.into_iter()
            .find(|row| row["name"] == "all-minilm-l6-v2")
            .expect("listed")
    };
    assert_eq!(row(&listed)["installed"], true);
    let config = "[[backends]]\nname = \"vectors\"\nkind = \"local\"\noperations = [\"embeddings\"]\n\
                  [[backends]]\nname = \"writer\"\nkind = \"local\"\nmodel = \"all-minilm-l6-v2\"\n";
    fs::write(workspace.path().join("cogn.toml"), config).expect("it can be written");
    let rows = workspace.run(&["--json", "backends"]).json();
    if cfg!(feature = "local") {
        assert_eq!(rows[0]["available"], true, "{rows}");
        let why = rows[1]["reason"].as_str().expect("a reason");
        assert!(why.contains("supports only embeddings"), "{why}");
    } else {
        assert!(
            rows[0]["reason"]
                .as_str()
                .expect("a reason")
                .contains("built without"),
            "{rows}"
        );
    }
    assert_eq!(
        rows[0]["features"],
        json!(["supports_system_role", "supports_batch"])
    );
    let removed = workspace.run(&["models", "rm", "all-minilm-l6-v2"]);
    assert_eq!(removed.code(), 0, "{}", removed.stderr());
    let left: Vec<_> = fs::read_dir(shelf)
        .expect("a folder")
        .map(|entry| entry.expect("one").file_name())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The configurations of the guide are valid as written, except for the paths of programs.
#[test]
fn guide_configurations_are_valid() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/programs.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let blocks: Vec<_> = page
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        let ran = place(block).run(&["config", "check"]);
        assert_eq!(ran.code(), 0, "{block}\n{}{}", ran.stdout(), ran.stderr());
    }
}
