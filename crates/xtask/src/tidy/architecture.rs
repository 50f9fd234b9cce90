//! ARCHITECTURE.md names files and folders that exist.

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

/// The code spans of a text, which has no code blocks with backticks inside.
fn spans(text: &str) -> Vec<&str> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(|span| !span.is_empty() && !span.contains('\n'))
        .collect()
}
