//! Migration of modules of every form to v2.2 and v2.5. The cases are in `tests/migrate`, each with the
//! expected result as a diff.

use std::fs;
use std::path::{Path, PathBuf};

use module::file_map::Entry;
use module::migrate::{self, DecisionLevel, Plan, diff};
use module::{FileMap, Format, Severity, Strict, check, load};

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/migrate");
    folders(&root)
}

/// The example modules of the project.
fn examples() -> Vec<PathBuf> {
    folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/modules"))
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<_> = fs::read_dir(root)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

pub(crate) fn read(root: &Path) -> FileMap {
    fn walk(root: &Path, folder: &Path, files: &mut FileMap) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(root, &path, files);
            } else {
                let name = path.strip_prefix(root).expect("inside").to_string_lossy();
                files.insert(
                    name.replace('\\', "/"),
                    Entry::Read(fs::read(&path).expect("a file")),
                );
            }
        }
    }
    let mut files = FileMap::new();
    walk(root, root, &mut files);
    files
}

/// A plan as text.
fn show(before: &FileMap, plan: &Plan) -> String {
    let mut text = format!("{} -> {}\n", plan.from, plan.to);
    for change in &plan.changes {
        text.push_str(&format!("{}: {}\n", change.file, change.what));
    }
    for decision in &plan.decisions {
        let weight = if decision.weight == DecisionLevel::Must {
            "must"
        } else {
            "review"
        };
        text.push_str(&format!(
            "{weight} {}:{}: {}\n",
            decision.file, decision.line, decision.what
        ));
    }
    for difference in diff(before, &plan.files) {
        text.push('\n');
        text.push_str(&difference.text);
    }
    text
}

#[test]
fn every_case_matches_its_snapshot() {
    for case in cases() {
        let before = read(&case.join("before"));
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(&case);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| {
            for (target, name) in [(Format::V2_2, "v22"), (Format::V2_5, "v25")] {
                let text = match migrate::plan(&before, target) {
                    Ok(plan) => show(&before, &plan),
                    Err(refusal) => format!("refused: {refusal}\nhint: {}\n", refusal.hint),
                };
                insta::assert_snapshot!(name, text);
            }
        });
    }
}

/// A second migration is empty, and so is one to an older format.
fn settles(name: &str, before: &FileMap) {
    for target in [Format::V2_2, Format::V2_5] {
        let Ok(plan) = migrate::plan(before, target) else {
            continue;
        };
        let again = migrate::plan(&plan.files, target).expect("what was migrated can be migrated");
        assert!(again.is_empty(), "{name} to {target}: {:#?}", again.changes);
        assert_eq!(again.files, plan.files, "{name} to {target}");
        assert!(again.from >= target, "{name} is now {}", again.from);
        let loaded = load(&plan.files);
        assert!(loaded.module.is_some(), "{name} loads");
    }
}

#[test]
fn migration_is_idempotent() {
    for case in cases() {
        settles(&case.display().to_string(), &read(&case.join("before")));
    }
    for example in examples() {
        settles(&example.display().to_string(), &read(&example));
    }
}

#[test]
fn every_example_can_be_migrated() {
    for example in examples() {
        for target in [Format::V2_2, Format::V2_5] {
            let plan = migrate::plan(&read(&example), target);
            let plan = plan.unwrap_or_else(|refusal| panic!("{}: {refusal}", example.display()));
            assert!(
                !plan.needs_decision(),
                "{}: {:#?}",
                example.display(),
                plan.decisions
            );
        }
    }
}

#[test]
fn newer_module_is_never_downgraded() {
    for example in examples() {
        let before = read(&example);
        let plan = migrate::plan(&before, Format::V2_2).expect("a plan");
        if plan.from == Format::V2_5 {
            assert!(plan.is_above() && plan.is_empty());
            assert_eq!(plan.files, before);
        }
    }
}

/// Carriage returns are preserved: the result equals that of the same module without them.
#[test]
fn line_endings_are_preserved() {
    let returned = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\n', "\r\n").into_bytes();
    for case in cases() {
        let before = read(&case.join("before"));
        let mut windows = FileMap::new();
        for (path, entry) in before.iter() {
            let Entry::Read(bytes) = entry else { continue };
            windows.insert(path, Entry::Read(returned(bytes)));
        }
        let (Ok(plain), Ok(plan)) = (
            migrate::plan(&before, Format::V2_5),
            migrate::plan(&windows, Format::V2_5),
        ) else {
            continue;
        };
        for file in ["module.yaml", "prompt.md", "schema.json"] {
            let derived = plan.from >= Format::V1 || file != "schema.json";
            let existed = before.contains(file) || before.contains("MODULE.md") && file != "schema.json";
            if derived && existed {
                let expected = plain.files.bytes(file).map(returned);
                assert_eq!(
                    plan.files.text(file),
                    expected
                        .as_deref()
                        .and_then(|bytes| std::str::from_utf8(bytes).ok()),
                    "{} {file}",
                    case.display()
                );
            }
        }
    }
}

/// Every line that the author wrote in a manifest and that the migration does not rename is still there,
/// in the same order.
#[test]
fn comments_are_preserved() {
    for case in cases() {
        let before = read(&case.join("before"));
        let Ok(plan) = migrate::plan(&before, Format::V2_5) else {
            continue;
        };
        let Some(text) = before.text("module.yaml") else {
            continue;
        };
        let after = plan.files.text("module.yaml").expect("a manifest");
        let mut rest = after;
        for line in text.lines().filter(|line| line.contains('#')) {
            let comment = line.get(line.find('#').unwrap_or_default()..).unwrap_or_default();
            // A JSON pointer contains a hash too.
            if line.contains(".json#") {
                continue;
            }
            let at = rest.find(comment);
            let at = at.unwrap_or_else(|| panic!("{}: `{comment}` is lost\n{after}", case.display()));
            rest = rest.get(at + comment.len()..).unwrap_or_default();
        }
    }
}

/// The result is valid in its new format, or the plan contains a required decision.
#[test]
fn result_is_strictly_valid_or_lists_decisions() {
    let cases = cases().into_iter().map(|case| case.join("before"));
    for folder in cases.chain(examples()) {
        for (target, strict) in [(Format::V2_2, Strict::V22), (Format::V2_5, Strict::V25)] {
            let Ok(plan) = migrate::plan(&read(&folder), target) else {
                continue;
            };
            if plan.needs_decision() || plan.is_above() {
                continue;
            }
            let report = check(&plan.files, strict).report;
            let errors: Vec<_> = report
                .iter()
                .filter(|diagnostic| diagnostic.severity == Severity::Error)
                .collect();
            assert!(errors.is_empty(), "{} to {target}: {errors:#?}", folder.display());
        }
    }
}
