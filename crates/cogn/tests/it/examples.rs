//! Quality checks of the examples beyond the format: each one loads, passes the strict checks of its
//! generation without a warning, matches its golden tests, has a script that answers for it, and its saved
//! replies have the results in their names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use module::diagnostic::Rule;
use module::envelope::{CheckOptions, Profile, check_reply, check_structure};
use module::file_map::Entry;
use module::schema::Section;
use module::stream::assemble_ndjson;
use module::{Code, FileMap, Format, Module, Severity, Strict, check};
use providers::scripted::Script;
use serde_json::Value;

/// Maximum size of an example file, media included.
const FILE_BYTES_MAX: u64 = 50 * 1024;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) struct Example {
    pub(crate) name: String,
    path: PathBuf,
    files: FileMap,
}

impl Example {
    pub(crate) fn module(&self) -> Module {
        check(&self.files, Strict::Standard)
            .module
            .expect("an example loads")
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        let bytes = self
            .files
            .bytes(path)
            .unwrap_or_else(|| panic!("{}: no {path}", self.name));
        serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{}/{path}: {error}", self.name))
    }

    /// Saved replies of a model: name and bytes.
    pub(crate) fn replies(&self) -> Vec<(String, Vec<u8>)> {
        let folder = self.path.join("tests/replies");
        let mut replies: Vec<_> = fs::read_dir(folder)
            .expect("every example has replies")
            .map(|entry| entry.expect("it can be listed").path())
            .map(|path| (file_name(&path), fs::read(&path).expect("it can be read")))
            .collect();
        replies.sort();
        replies
    }
}

pub(crate) fn examples() -> Vec<Example> {
    let mut examples: Vec<_> = fs::read_dir(root().join("examples/modules"))
        .expect("examples/modules is there")
        .map(|entry| entry.expect("it can be listed").path())
        .map(|path| {
            let mut files = FileMap::new();
            take_folder(&path, "", &mut files);
            Example {
                name: file_name(&path),
                path,
                files,
            }
        })
        .collect();
    examples.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(examples.len() >= 12, "examples went missing");
    examples
}

fn take_folder(folder: &Path, prefix: &str, files: &mut FileMap) {
    for entry in fs::read_dir(folder).expect("it can be listed") {
        let path = entry.expect("it can be listed").path();
        let name = format!("{prefix}{}", file_name(&path));
        let size_bytes = fs::metadata(&path).expect("it is there").len();
        if path.is_dir() {
            take_folder(&path, &format!("{name}/"), files);
            continue;
        }
        assert!(size_bytes <= FILE_BYTES_MAX, "{} is too large", path.display());
        if name.starts_with("assets/") {
            let mut head = fs::read(&path).expect("it can be read");
            head.truncate(module::limits::HEAD_BYTES);
            files.insert(name, Entry::Listed { size_bytes, head });
        } else {
            files.insert(name, Entry::Read(fs::read(&path).expect("it can be read")));
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn every_format_and_tier_has_an_example() {
    let modules: Vec<_> = examples().iter().map(Example::module).collect();
    for format in [Format::V0, Format::V1, Format::V2_1, Format::V2_2, Format::V2_5] {
        assert!(
            modules.iter().any(|module| module.format == format),
            "none for {format}"
        );
    }
    let tiers: BTreeSet<_> = modules
        .iter()
        .filter(|module| module.manifest.tier_declared)
        .map(|module| module.manifest.tier.as_str())
        .collect();
    assert_eq!(
        tiers.into_iter().collect::<Vec<_>>(),
        ["decision", "exec", "exploration"]
    );
    assert!(
        modules
            .iter()
            .any(|module| !module.manifest.composition.requires.is_empty())
    );
    assert!(
        modules
            .iter()
            .any(|module| !module.manifest.context.accepts.is_empty())
    );
}

#[test]
fn each_passes_strict_checks_of_its_generation() {
    for example in examples() {
        let format = example.module().format;
        let (strict, only) = match format {
            Format::V2_5 => (Strict::V25, None),
            Format::V2_2 => (Strict::V22, None),
            _ => (Strict::Standard, Some(Rule::DEPRECATED_FORMAT)),
        };
        let report = check(&example.files, strict).report;
        let unexpected: Vec<_> = report
            .iter()
            .filter(|found| found.severity > Severity::Note && Some(found.rule) != only)
            .collect();
        assert!(unexpected.is_empty(), "{}: {unexpected:#?}", example.name);
    }
}

#[test]
fn each_is_named_after_its_folder() {
    for example in examples() {
        assert_eq!(example.module().name(), example.name);
    }
}

#[test]
fn inputs_match_input_schema() {
    for example in examples() {
        let module = example.module();
        assert!(!module.tests.is_empty(), "{} has no golden test", example.name);
        for test in &module.tests {
            let input = example.json(&test.input);
            let schema = module.contract.validator(Section::Input).expect("it compiles");
            assert!(
                schema.expect("it is there").is_valid(&input),
                "{}/{}",
                example.name,
                test.input
            );
        }
    }
}

#[test]
fn golden_tests_cover_all_dialects() {
    let mut dialects = BTreeSet::new();
    for example in examples() {
        for test in &example.module().tests {
            let expected = example.json(&test.expected);
            let has = |key: &str| expected.get(key).is_some();
            dialects.insert(match () {
                () if has("$validate") => "schema",
                () if has("_validate") => "rules",
                () => "match",
            });
        }
    }
    assert_eq!(
        dialects.into_iter().collect::<Vec<_>>(),
        ["match", "rules", "schema"]
    );
}

#[test]
fn each_has_an_answering_script() {
    for example in examples() {
        let path = root().join(format!("examples/scripted/{}.yaml", example.name));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let script = Script::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!script.0.is_empty());
        assert!(script.0.iter().all(|exchange| exchange.reply.is_some()));
    }
    let scripts = fs::read_dir(root().join("examples/scripted"))
        .expect("it is there")
        .count();
    assert_eq!(scripts, examples().len(), "a script without a module");
}

/// A reply is named after its result: `ok-...` or the error code. The result is an envelope in either case.
#[test]
fn replies_are_named_after_their_result() {
    for example in examples() {
        let module = example.module();
        let replies = example.replies();
        for (name, bytes) in &replies {
            if name.ends_with(".ndjson") {
                continue;
            }
            let envelope = check_reply(&module, bytes, &CheckOptions::default()).envelope;
            let written = envelope.error().map_or("ok", |error| &error.code);
            let outcome = Code::find(written).map_or_else(|| String::from(written), |code| code.to_string());
            assert_eq!(
                name.split('-').next(),
                Some(outcome.as_str()),
                "{}/{name}: {envelope:#?}",
                example.name
            );
            let value = envelope.into_value();
            assert_eq!(
                check_structure(&value, Profile::Cognitive),
                vec![],
                "{}/{name}",
                example.name
            );
        }
        assert!(
            replies.iter().any(|(name, _)| name.starts_with("ok-")),
            "{}",
            example.name
        );
        assert!(
            replies.iter().any(|(name, _)| name.starts_with('E')),
            "{}",
            example.name
        );
    }
}

/// The binary runs every golden input with the module's script, streamed and not streamed, successfully.
#[test]
fn each_runs_with_its_script() {
    for example in examples() {
        for test in &example.module().tests {
            for stream in [false, true] {
                let mut cogn = Command::new(env!("CARGO_BIN_EXE_cogn"));
                cogn.current_dir(root())
                    .args(["--modules", "examples/modules", "run", &example.name, "--json"])
                    .arg(example.path.join(&test.input))
                    .arg("--backend")
                    .arg(format!("scripted:examples/scripted/{}.yaml", example.name));
                if stream {
                    cogn.arg("--stream");
                }
                let output = cogn.output().expect("cogn runs");
                let text = String::from_utf8_lossy(&output.stdout);
                assert!(output.status.success(), "{}/{}: {text}", example.name, test.name);
                assert!(
                    text.contains(if stream { "\"final\":true" } else { "\"ok\": true" }),
                    "{text}"
                );
            }
        }
    }
}

/// A recorded stream folds without violations into the answer of a saved reply.
#[test]
fn recorded_streams_fold_into_the_answer() {
    let mut streams = 0;
    for example in examples() {
        for (name, bytes) in example.replies() {
            if !name.ends_with(".ndjson") {
                continue;
            }
            streams += 1;
            let assembled = assemble_ndjson(&bytes);
            assert!(
                assembled.ended && assembled.is_ok(),
                "{}/{name}: {assembled:#?}",
                example.name
            );
            assert!(
                assembled.violations.is_empty(),
                "{}/{name}: {assembled:#?}",
                example.name
            );
            let module = example.module();
            let data = module.contract.validator(Section::Data).expect("it compiles");
            assert!(data.expect("it is there").is_valid(&assembled.envelope["data"]));
        }
    }
    assert!(streams >= 2, "no example shows a stream");
}

/// A golden test with a complete answer contains one that its module accepts.
#[test]
fn golden_answers_satisfy_the_contract() {
    let mut answers = 0;
    for example in examples() {
        let module = example.module();
        for test in &module.tests {
            let expected = example.json(&test.expected);
            if expected.get("_validate").is_some() {
                continue;
            }
            answers += 1;
            let answer = expected.get("$example").unwrap_or(&expected).to_string();
            let envelope = check_reply(&module, answer.as_bytes(), &CheckOptions::default()).envelope;
            assert!(
                envelope.is_ok(),
                "{}/{}: {envelope:#?}",
                example.name,
                test.expected
            );
        }
    }
    assert!(answers >= 10, "too few golden tests show an answer");
}
