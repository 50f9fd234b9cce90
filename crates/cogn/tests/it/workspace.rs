//! A temporary working folder with a temporary home: modules installed on the machine are not visible.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::harness::user_configuration_in;

pub(crate) const MANIFEST: &str = "name: NAME
version: 1.0.0
responsibility: sort messages
tier: decision
excludes: [answering them]
overflow: {enabled: false}
enums: {strategy: strict}
";

pub(crate) const PROMPT: &str =
    "Sort the message in $INPUT into one of the drawers. Answer in the envelope of v2.2: `meta` holds \
confidence, risk and explain, `data` holds the drawer and a rationale.
";

pub(crate) const SCHEMA: &str = r#"{
  "meta": {
    "type": "object",
    "required": ["confidence", "risk", "explain"],
    "properties": { "explain": { "type": "string", "maxLength": 280 } }
  },
  "input": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } },
  "data": { "type": "object", "required": ["rationale"], "properties": { "rationale": { "type": "string" } } },
  "error": { "type": "object", "required": ["code", "message"] }
}
"#;

pub(crate) struct Workspace {
    folder: tempfile::TempDir,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("home")).expect("a home");
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A valid module at `path`; its name is the last component.
    pub(crate) fn good(&self, path: &str) -> PathBuf {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.module(
            path,
            &[
                ("module.yaml", &MANIFEST.replace("NAME", name)),
                ("prompt.md", PROMPT),
                ("schema.json", SCHEMA),
                ("tests/a.input.json", r#"{"text": "hello"}"#),
                ("tests/a.expected.json", r#"{"ok": true}"#),
            ],
        )
    }

    pub(crate) fn module(&self, path: &str, files: &[(&str, &str)]) -> PathBuf {
        let folder = self.path().join(path);
        for (file, text) in files {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
            fs::write(file, text).expect("a file");
        }
        folder
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.run_in(".", args)
    }

    pub(crate) fn run_in(&self, folder: &str, args: &[&str]) -> Ran {
        let output = Command::new(env!("CARGO_BIN_EXE_cogn"))
            .args(args)
            .current_dir(self.path().join(folder))
            .env("HOME", self.path().join("home"))
            .env("XDG_CONFIG_HOME", user_configuration_in(self.path()))
            .env_remove("COGNITIVE_MODULES_PATH")
            .env_remove("XDG_STATE_HOME")
            .env_remove("COGN_MODELS_DIR")
            .output()
            .expect("cogn runs");
        Ran { output }
    }
}

pub(crate) struct Ran {
    output: Output,
}

impl Ran {
    pub(crate) fn code(&self) -> i32 {
        self.output.status.code().expect("an exit code")
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8(self.output.stdout.clone()).expect("UTF-8")
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8(self.output.stderr.clone()).expect("UTF-8")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.output.stdout).expect("JSON")
    }
}
