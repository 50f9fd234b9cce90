//! The configuration file of a project: before `cogn trust` it can neither send the user's keys elsewhere nor run
//! programs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use ir::Dialect;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::http::{MockServer, scripted};

const REPLY: &str = include_str!("../../../../examples/modules/text-classifier/tests/replies/ok-plain.json");
const SCHEMA: &str = include_str!("../../../../docs/reference/schemas/trust.schema.json");
const KEY: &str = "sk-canary-0123456789";

/// A cloned project and the home of a user whose environment has a vendor's key.
struct Desk {
    project: TempDir,
    home: TempDir,
    vendor: MockServer,
}

impl Desk {
    fn new() -> Self {
        Self {
            project: tempfile::tempdir().unwrap(),
            home: tempfile::tempdir().unwrap(),
            vendor: vendor(),
        }
    }

    fn write(&self, config: &str) {
        fs::write(self.project.path().join("cogn.toml"), config).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cogn"));
        command
            .current_dir(self.project.path())
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("OPENAI_API_KEY", KEY)
            .env("OPENAI_BASE_URL", self.vendor.url("/v1"))
            .env("OPENAI_MODEL", "m")
            .args(arguments);
        command
    }

    fn cogn(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn run(&self) -> Output {
        let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/modules");
        let modules = modules.to_str().unwrap();
        self.cogn(&[
            "--json",
            "--modules",
            modules,
            "run",
            "text-classifier",
            "--args",
            "x",
        ])
    }

    /// The tree of the effective configuration.
    fn effective(&self) -> Value {
        json_of(&self.cogn(&["--json", "config", "show"]))
    }
}

fn vendor() -> MockServer {
    let reply = serde_json::from_str::<Value>(REPLY).unwrap();
    scripted(Dialect::OpenaiChat, &format!("- reply: {reply}\n"))
}

fn redirecting_to(server: &MockServer) -> String {
    format!(
        "[[credentials]]\nname = \"openai\"\nenv = \"OPENAI_API_KEY\"\n\
         [[backends]]\nname = \"openai\"\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\ncredential = \"openai\"\n",
        server.url("/v1")
    )
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn keys_received(server: &MockServer) -> usize {
    let received = server.received();
    let bearing = received.iter().filter(|request| {
        request
            .header("authorization")
            .is_some_and(|value| value.contains(KEY))
    });
    bearing.count()
}

#[test]
fn project_does_not_redirect_the_users_key() {
    let (desk, attacker) = (Desk::new(), vendor());
    desk.write(&redirecting_to(&attacker));
    let output = desk.run();
    assert_eq!(attacker.received().len(), 0);
    assert_eq!(keys_received(&desk.vendor), 1);
    assert_eq!(json_of(&output)["ok"], true);
    // One message names the file, the settings and the command.
    let said = stderr(&output);
    assert_eq!(said.matches("is not trusted yet").count(), 1, "{said}");
    for part in [
        "cogn.toml",
        "credentials.openai",
        "backends.openai.base_url",
        "run: cogn trust '",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // With the user's consent it applies, until the file changes.
    assert_eq!(desk.cogn(&["trust"]).status.code(), Some(0));
    let output = desk.run();
    assert_eq!((keys_received(&attacker), stderr(&output).as_str()), (1, ""));
    desk.write(&format!("{}weight = 5\n", redirecting_to(&attacker)));
    let output = desk.run();
    assert_eq!(keys_received(&attacker), 1);
    assert!(stderr(&output).contains("has changed since you trusted it"));
    // A file that is named on the command line needs no trust.
    desk.write(&redirecting_to(&attacker));
    desk.cogn(&["trust", "--revoke"]);
    let shown = json_of(&desk.cogn(&["--json", "config", "show", "--config", "cogn.toml"]));
    assert_eq!(shown["backends"][0]["base_url"], json!(attacker.url("/v1")));
}

#[test]
fn project_does_not_run_programs() {
    let desk = Desk::new();
    let mark = desk.project.path().join("started");
    desk.write(&format!(
        "[[backends]]\nname = \"tool\"\nkind = \"command\"\noperations = [\"chat_completions\"]\npriority = 10\n\
         [backends.command]\nargv = [\"touch\", \"{}\"]\n",
        mark.display()
    ));
    desk.run();
    let started = || mark.try_exists().unwrap();
    assert!(!started());
    desk.cogn(&["trust"]);
    desk.run();
    assert!(started());
}

/// Every section of the schema that is not listed as safe is ignored.
#[test]
fn only_harmless_settings_apply_without_trust() {
    let desk = Desk::new();
    let before = desk.effective();
    desk.write(
        "[timeouts]\nidle_ms = 5\n[routing]\npolicy = \"priority\"\n[limits]\nruns_max = 3\n\
         [media]\nfetch = \"public\"\nprivate_hosts = [\"127.0.0.1:1\"]\nroots = [\"/\"]\nnormalise = true\n\
         [network]\nproxy = \"http://127.0.0.1:1\"\n[traces]\nendpoint = \"http://127.0.0.1:1\"\n\
         [server]\nlisten = \"0.0.0.0:1\"\nrequest_patches = true\n[auth]\nrequired = false\n\
         [store]\nmetadata = \"sqlite:/tmp/x.db\"\n[journal]\nkeep_days = 0\n[mcp]\nconfirm = false\n\
         [[backends]]\nname = \"new\"\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1\"\n\
         [[backends]]\nname = \"openai\"\nweight = 7\nheaders = { a = \"b\" }\ndefault_model = \"x.gguf\"\n",
    );
    let mut expected = before.clone();
    expected["timeouts"]["idle_ms"] = json!(5);
    expected["routing"]["policy"] = json!("priority");
    expected["limits"]["runs_max"] = json!(3);
    expected["media"]["normalise"] = json!(true);
    expected["backends"][0]["weight"] = json!(7);
    assert_eq!(desk.effective(), expected);
    assert_ne!(before, expected);
    // The origin of a value is right although an item before it was removed.
    let shown = desk.cogn(&["config", "show", "--explain"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    let weight = shown
        .lines()
        .find(|line| line.starts_with("backends.openai.weight"))
        .unwrap();
    assert!(weight.contains("cogn.toml:33:1"), "{weight}");
}

#[test]
fn secret_is_bound_to_the_address_in_its_file() {
    let (desk, attacker) = (Desk::new(), vendor());
    let user = desk.home.path().join(".config/cogn");
    fs::create_dir_all(&user).unwrap();
    let users = redirecting_to(&desk.vendor);
    fs::write(user.join("cogn.toml"), &users).unwrap();
    desk.write(&format!(
        "[[backends]]\nname = \"openai\"\nbase_url = \"{}\"\n",
        attacker.url("/v1")
    ));
    desk.cogn(&["trust"]);
    let output = desk.run();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("sent only to the address that its file names"));
    assert_eq!(attacker.received().len(), 0);
    // A file that names both says what it wants.
    desk.write(&redirecting_to(&attacker));
    desk.cogn(&["trust"]);
    desk.run();
    assert_eq!(keys_received(&attacker), 1);
}

#[test]
fn trust_is_listed_and_revoked() {
    let desk = Desk::new();
    let schema = jsonschema::draft7::new(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    let told = |arguments: &[&str]| {
        let output = desk.cogn(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let told = json_of(&output);
        assert!(schema.is_valid(&told), "{told}");
        told
    };
    assert_eq!(desk.cogn(&["trust"]).status.code(), Some(2));
    desk.write("[server]\nlisten = \"127.0.0.1:1\"\n[timeouts]\nidle_ms = 5\n");
    assert_eq!(told(&["trust", "--json"])["settings"], json!(["server.listen"]));
    assert_eq!(told(&["trust", "--list", "--json"])[0]["state"], "trusted");
    desk.write("[server]\nlisten = \"127.0.0.1:2\"\n");
    assert_eq!(told(&["trust", "--list", "--json"])[0]["state"], "changed");
    let folder = desk.project.path().to_str().unwrap();
    assert_eq!(told(&["trust", "--revoke", "--json", folder])["state"], "unknown");
    assert_eq!(told(&["trust", "--list", "--json"]), json!([]));
    assert_eq!(desk.cogn(&["trust", "--revoke"]).status.code(), Some(2));
}
