//! ARCHITECTURE.md names files, folders and functions that exist.

use crate::git_files;
use crate::shell::root;

/// Rows of a code map begin with paths relative to the folder that its heading names.
#[test]
fn code_maps_name_existing_paths() {
    let text = git_files::read("ARCHITECTURE.md");
    let mut base = None;
    let mut checked = 0;
    for line in text.lines() {
        if line.starts_with("## ") {
            let folder = line
                .starts_with("## Code map")
                .then(|| spans(line))
                .into_iter()
                .flatten()
                .next();
            base = folder.map(|folder| root().join(folder));
        }
        let Some(base) = &base else { continue };
        let Some(row) = line.strip_prefix("| `") else {
            continue;
        };
        let cell = row.split(" | ").next().unwrap_or_default();
        for path in spans(&format!("`{cell}")) {
            assert!(
                base.join(path).try_exists().unwrap_or_default(),
                "ARCHITECTURE.md: no {path} in {}",
                base.display()
            );
            checked += 1;
        }
    }
    assert!(checked > 40, "only {checked} paths were found");
}

/// Paths in running text that begin with `crates/`, `docs/` or `examples/`.
#[test]
fn paths_in_the_text_exist() {
    let text = git_files::read("ARCHITECTURE.md");
    for path in spans(&text) {
        let is_path = ["crates/", "docs/", "examples/"]
            .iter()
            .any(|folder| path.starts_with(folder));
        if is_path
            && path
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "/_.-".contains(c))
        {
            assert!(
                root().join(path).try_exists().unwrap_or_default(),
                "ARCHITECTURE.md: no {path}"
            );
        }
    }
}

/// Call paths by their heading, with the maximum number of steps.
const CALL_PATHS: [(&str, usize); 2] = [
    ("## Call path of a module stream", 28),
    ("## Call path of a relayed chat", 24),
];

/// Each step of a call path is a numbered line that names files with a function: `engine/run/task.rs:drive` is
/// the function `drive` in `crates/engine/src/run/task.rs`.
#[test]
fn call_paths_name_existing_functions() {
    let text = git_files::read("ARCHITECTURE.md");
    for (heading, steps_max) in CALL_PATHS {
        let section = text.lines().skip_while(|line| *line != heading).skip(1);
        let section = section.take_while(|line| !line.starts_with("## "));
        let steps: Vec<_> = section
            .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
            .collect();
        assert!(
            (1..=steps_max).contains(&steps.len()),
            "{heading}: {} steps, at most {steps_max} are allowed",
            steps.len()
        );
        for (index, step) in steps.iter().enumerate() {
            let number = format!("{}. ", index + 1);
            assert!(
                step.starts_with(&number),
                "{heading}: {step} is not step {number}"
            );
            let places: Vec<_> = spans(step)
                .into_iter()
                .filter_map(|span| span.split_once(".rs:"))
                .collect();
            assert!(!places.is_empty(), "{heading}: step {number} names no function");
            for (file, function) in places {
                let (folder, file) = file.split_once('/').unwrap_or_default();
                let path = format!("crates/{folder}/src/{file}.rs");
                let defined = git_files::read(&path).contains(&format!("fn {function}"));
                assert!(
                    defined,
                    "{heading}: step {number} names `{function}`, which {path} does not define"
                );
            }
        }
    }
}

/// Each invariant names the function that checks it, by the path of its file.
#[test]
fn invariants_name_existing_checks() {
    let text = git_files::read("ARCHITECTURE.md");
    let section = text.split_once("## Invariants\n").map_or("", |(_, rest)| rest);
    let section = section.split_once("\n## ").map_or("", |(section, _)| section);
    let mut checked = 0;
    for invariant in section.split("\n- ").skip(1) {
        let checks: Vec<_> = spans(invariant)
            .into_iter()
            .filter_map(|span| span.split_once(".rs:"))
            .collect();
        assert!(!checks.is_empty(), "no check is named: {invariant}");
        for (path, function) in checks {
            let defined = git_files::read(&format!("{path}.rs")).contains(&format!("fn {function}("));
            assert!(defined, "{path}.rs does not define `{function}`");
        }
        checked += 1;
    }
    assert!(checked > 8, "only {checked} invariants were found");
}

#[test]
fn unbounded_channels_are_banned() {
    let lints = git_files::read("clippy.toml");
    for banned in ["UnboundedSender", "UnboundedReceiver"] {
        assert!(
            lints.contains(&format!("tokio::sync::mpsc::{banned}")),
            "{banned}"
        );
    }
}

/// The code spans of a text, which has no code blocks with backticks inside.
fn spans(text: &str) -> Vec<&str> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(|span| !span.is_empty() && !span.contains('\n'))
        .collect()
}
