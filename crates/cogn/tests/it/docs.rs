//! Documentation tests. Every ```console block of README.md and docs/guide is a session: lines that start
//! with `$ cogn`, or pipe into it, are run with the binary that was just built, in a copy of the examples,
//! and the output must equal the output on the page. A line `...` matches any lines, `...` inside a line
//! matches any text. `$ export NAME=value` is valid for the rest of the page; other commands are not run.
//!
//! `UPDATE_DOCS=1 cargo test -p cogn --test it docs` writes the actual output into pages that differ.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::examples::root;

#[test]
fn pages_show_actual_output() {
    let update = env::var_os("UPDATE_DOCS").is_some();
    let mut wrong = String::new();
    let mut commands = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page can be read");
        let session = Session::new();
        let outcome = session.play(&text);
        commands += outcome.commands;
        if outcome.text == text {
            continue;
        }
        if update {
            fs::write(&page, &outcome.text).expect("a page can be written");
        } else {
            wrong.push_str(&outcome.differences.replace("PAGE", &page.display().to_string()));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(commands > 0, "the pages show no commands");
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let guide = fs::read_dir(root().join("docs/guide")).expect("docs/guide is there");
    pages.extend(guide.map(|entry| entry.expect("it can be listed").path()));
    pages.retain(|page| page.extension().is_some_and(|ending| ending == "md"));
    pages.sort();
    pages
}

/// JSON and YAML blocks of the pages must be valid.
#[test]
fn data_on_pages_can_be_parsed() {
    let mut blocks = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page can be read");
        for part in text.split("\n```").skip(1).step_by(2) {
            let (language, block) = part.split_once('\n').unwrap_or_default();
            let error = match language {
                "json" => serde_json::from_str::<serde_json::Value>(block)
                    .err()
                    .map(|e| e.to_string()),
                "yaml" => module::document::parse_yaml(block).err().map(|e| e.to_string()),
                _ => continue,
            };
            blocks += 1;
            assert_eq!(error, None, "{}:\n{block}", page.display());
        }
    }
    assert!(blocks > 0, "the pages show no data");
}

/// The format document shows a few commands; they must exist as written.
#[test]
fn commands_of_format_document_exist() {
    let path = root().join("crates/module/tests/fixtures/documents/formats.zh.md");
    let document = fs::read_to_string(path).expect("the document is there");
    let mut commands = 0;
    for command in document.lines().filter_map(|line| line.strip_prefix("cogn ")) {
        commands += 1;
        // Help is printed only if all arguments before it were parsed.
        let output = Command::new(env!("CARGO_BIN_EXE_cogn"))
            .args(command.split(' '))
            .arg("--help")
            .output()
            .expect("cogn runs");
        assert!(output.status.success(), "cogn {command}");
    }
    assert!(commands >= 5, "the commands went missing");
}

/// A temporary working folder with a copy of the examples, so that pages may show commands that write.
struct Session {
    folder: tempfile::TempDir,
}

#[derive(Default)]
struct Outcome {
    /// The page with the actual output.
    text: String,
    differences: String,
    commands: usize,
}

impl Session {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the session");
        copy(&root().join("examples"), &folder.path().join("examples"));
        Self { folder }
    }

    fn play(&self, page: &str) -> Outcome {
        let mut outcome = Outcome::default();
        let mut exports = Vec::new();
        let mut lines = page.lines().peekable();
        let mut inside = false;
        while let Some(line) = lines.next() {
            outcome.push(line);
            if line.starts_with("```") {
                inside = line == "```console";
            }
            let Some(command) = line.strip_prefix("$ ").filter(|_| inside) else {
                continue;
            };
            if let Some(export) = command.strip_prefix("export ") {
                exports.extend(export.split_once('='));
            }
            let mut shown = Vec::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && !line.starts_with("```")) {
                shown.push(line);
            }
            if !is_run(command) {
                shown.iter().for_each(|line| outcome.push(line));
                continue;
            }
            outcome.commands += 1;
            let printed = self.run(command, &exports);
            let printed: Vec<_> = printed.trim_end().lines().collect();
            if fits(&shown, &printed) {
                shown.iter().for_each(|line| outcome.push(line));
            } else {
                outcome.differ(command, &shown, &printed);
                printed.iter().for_each(|line| outcome.push(line));
            }
        }
        outcome
    }

    fn run(&self, command: &str, exports: &[(&str, &str)]) -> String {
        let binary = Path::new(env!("CARGO_BIN_EXE_cogn"));
        let mut path = vec![binary.parent().expect("a folder").to_path_buf()];
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        let output = Command::new("sh")
            .args(["-c", &format!("{{ {command}\n}} 2>&1")])
            .current_dir(self.folder.path())
            .env("PATH", env::join_paths(path).expect("a path"))
            .env("HOME", self.folder.path())
            .env("NO_COLOR", "1")
            .env_remove("COGNITIVE_MODULES_PATH")
            .envs(exports.iter().copied())
            .output()
            .expect("sh runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Outcome {
    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn differ(&mut self, command: &str, shown: &[&str], printed: &[&str]) {
        let (shown, printed) = (shown.join("\n"), printed.join("\n"));
        write!(
            self.differences,
            "PAGE: `{command}`\n--- shown\n{shown}\n--- printed\n{printed}\n\n"
        )
        .expect("a string takes text");
    }
}

fn is_run(command: &str) -> bool {
    command.starts_with("cogn ") || command.contains(" | cogn ")
}

/// Whether the shown output matches the printed one.
fn fits(shown: &[&str], printed: &[&str]) -> bool {
    match (shown.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((&"...", rest)), _) => (0..=printed.len()).any(|skip| fits(rest, &printed[skip..])),
        (Some((first, shown)), Some((line, printed))) => line_fits(first, line) && fits(shown, printed),
        _ => false,
    }
}

fn line_fits(shown: &str, printed: &str) -> bool {
    let mut parts = shown.split("...");
    let Some(mut rest) = printed.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.trim_end().is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("it can be listed") {
        let entry = entry.expect("it can be listed");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("it can be copied");
        }
    }
}

#[test]
fn dots_match_any_text() {
    assert!(fits(&["a", "...", "d"], &["a", "b", "c", "d"]));
    assert!(fits(&["a", "..."], &["a"]));
    assert!(!fits(&["a"], &["a", "b"]));
    assert!(!fits(&["a", "...", "d"], &["a", "b"]));
    assert!(line_fits("took ... ms", "took 12 ms"));
    assert!(line_fits("a...b...c", "a-b-c"));
    assert!(!line_fits("took ... ms", "took 12 s"));
    assert!(!line_fits("a", "ab"));
}
