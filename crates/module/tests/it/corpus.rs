//! Modules with one fault each, and the expected diagnostics. Each file under `tests/corpus` contains a
//! family of cases; a case changes a valid module and ends with the expected diagnostics. Set
//! `UPDATE_CORPUS=1` to write the current diagnostics, and review the difference.
//!
//! A case starts with `=== name`. Its parts start with `--- ` and a directive:
//! `base NAME` (default v22), `file PATH`, `edit PATH` (lines `old => new`), `remove PATH`,
//! `bytes PATH` (with `\xNN`), `generate PATH` (lines `text * count`), `refused PATH REASON`,
//! `listed PATH BYTES`, `strict v22|v25`, `folder NAME`, `neighbour NAME VERSION [-> NAMES]`, `expect`.

#![expect(
    clippy::string_slice,
    reason = "corpus files are cut where markers were found"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

use module::FileMap;
use module::check::{CheckContext, ModuleSummary, Strict, check_with_dependencies};
use module::diagnostic::Diagnostic;
use module::file_map::{Entry, Refusal};

/// Far more than any case takes, so that a case that hangs fails.
const CASE_TIME_MAX: Duration = Duration::from_secs(5);

#[test]
fn every_case_has_expected_diagnostics() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let bases = bases(&folder.join("base"));
    #[expect(clippy::disallowed_methods, reason = "a test's own switch")]
    let update = env::var("UPDATE_CORPUS").is_ok();
    let mut cases = 0;
    let mut failures = Vec::new();
    for path in sorted(&folder) {
        if path.extension().is_none_or(|ending| ending != "txt") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a corpus file");
        let mut renewed = String::new();
        for block in blocks(&text) {
            let case = Case::read(block, &bases);
            if case.name.is_empty() {
                renewed.push_str(block);
                continue;
            }
            cases += 1;
            let started = Instant::now();
            let actual = case.run();
            assert!(started.elapsed() < CASE_TIME_MAX, "{} takes too long", case.name);
            if actual != case.expected {
                failures.push(format!(
                    "{}: {}\nexpected:\n{}got:\n{actual}",
                    path.display(),
                    case.name,
                    case.expected
                ));
            }
            let (before, _) = block.split_once("--- expect\n").unwrap_or((block, ""));
            writeln!(renewed, "{}\n--- expect\n{actual}", before.trim_end_matches('\n')).expect("a string");
        }
        if update {
            fs::write(&path, renewed.trim_end_matches('\n').to_owned() + "\n").expect("a corpus file");
        }
    }
    assert!(cases >= 150, "only {cases} cases");
    assert!(update || failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn base_modules_have_no_diagnostics() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/base");
    for (name, files) in bases(&folder) {
        let strict = match name.as_str() {
            "v22" => Strict::V22,
            "v25" => Strict::V25,
            _ => Strict::Standard,
        };
        let loaded = check_with_dependencies(&files, strict, CheckContext::default());
        let found: Vec<String> = loaded
            .report
            .iter()
            .filter(|diagnostic| diagnostic.rule.name() != "deprecated-format")
            .map(show)
            .collect();
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the corpus");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn bases(folder: &Path) -> BTreeMap<String, FileMap> {
    sorted(folder)
        .into_iter()
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("a base");
            let mut case = Case::default();
            for (directive, body) in parts(&text) {
                case.apply(directive, body);
            }
            (name, case.files)
        })
        .collect()
}

/// The text before the first case, then each case.
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    let mut starts: Vec<usize> = text
        .match_indices("=== ")
        .filter(|(at, _)| *at == 0 || text.as_bytes()[at - 1] == b'\n')
        .map(|(at, _)| at)
        .collect();
    if starts.first() != Some(&0) {
        starts.insert(0, 0);
    }
    starts.push(text.len());
    let pairs: Vec<(usize, usize)> = starts.windows(2).map(|pair| (pair[0], pair[1])).collect();
    pairs.into_iter().map(move |(from, to)| &text[from..to])
}

fn parts(block: &str) -> Vec<(&str, &str)> {
    let mut parts = Vec::new();
    let mut rest = block;
    while let Some(at) = rest
        .find("--- ")
        .filter(|at| *at == 0 || rest.as_bytes()[at - 1] == b'\n')
    {
        let after = &rest[at + 4..];
        let (directive, body) = after.split_once('\n').unwrap_or((after, ""));
        let end = body.find("\n--- ").map_or(body.len(), |end| end + 1);
        let end = if body.starts_with("--- ") { 0 } else { end };
        parts.push((directive, &body[..end]));
        rest = &body[end..];
    }
    parts
}

#[derive(Default)]
struct Case {
    name: String,
    files: FileMap,
    strict: Strict,
    folder: Option<String>,
    neighbours: Vec<ModuleSummary>,
    expected: String,
}

impl Case {
    fn read(block: &str, bases: &BTreeMap<String, FileMap>) -> Self {
        let Some(title) = block.lines().next().and_then(|line| line.strip_prefix("=== ")) else {
            return Self::default();
        };
        let body = &block[block.find('\n').map_or(block.len(), |at| at + 1)..];
        let mut case = Self {
            name: String::from(title),
            files: bases["v22"].clone(),
            ..Self::default()
        };
        for (directive, body) in parts(body) {
            match directive.split_once(' ') {
                Some(("base", "none")) => case.files = FileMap::new(),
                Some(("base", name)) => case.files = bases[name].clone(),
                _ => case.apply(directive, body),
            }
        }
        case
    }

    fn apply(&mut self, directive: &str, body: &str) {
        let mut words = directive.split(' ');
        let kind = words.next().unwrap_or_default();
        let path = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        match kind {
            "file" => self.files.insert(path, Entry::Read(body.as_bytes().to_vec())),
            "edit" => {
                let mut text = self.files.text(path).expect("a text to edit").to_owned();
                for line in body.lines().filter(|line| !line.is_empty()) {
                    let (old, new) = line
                        .split_once(" => ")
                        .or_else(|| line.split_once(" =>"))
                        .expect("old => new");
                    let old = &old.replace("\\n", "\n");
                    assert!(text.contains(old), "{}: `{old}` is not in {path}", self.name);
                    text = text.replacen(old, &new.replace("\\n", "\n").replace("\\t", "\t"), 1);
                }
                self.files.insert(path, Entry::Read(text.into_bytes()));
            }
            "remove" => {
                self.files.remove(path).expect("a file to remove");
            }
            "bytes" => self
                .files
                .insert(path, Entry::Read(unescape(body.trim_end_matches('\n')))),
            "generate" => self.files.insert(path, Entry::Read(generate(body))),
            "refused" => self.files.insert(
                path,
                Entry::Refused(refusal(rest.first().copied().unwrap_or_default())),
            ),
            "listed" => {
                let size_bytes = rest[0].parse().expect("a size");
                let head = unescape(body.trim_end_matches('\n'));
                self.files.insert(path, Entry::Listed { size_bytes, head });
            }
            "strict" => self.strict = if path == "v25" { Strict::V25 } else { Strict::V22 },
            "folder" => self.folder = Some(String::from(path)),
            "neighbour" => self.neighbours.push(ModuleSummary {
                name: String::from(path),
                version: String::from(rest[0]),
                leads_to: rest
                    .iter()
                    .skip(2)
                    .map(|name| String::from(name.trim_end_matches(',')))
                    .collect(),
            }),
            "expect" => {
                self.expected =
                    String::from(body.trim_matches('\n')) + if body.trim().is_empty() { "" } else { "\n" }
            }
            other => panic!("{}: unknown directive `{other}`", self.name),
        }
    }

    fn run(&self) -> String {
        let find = |name: &str| self.neighbours.iter().find(|card| card.name == name).cloned();
        let surroundings = CheckContext {
            folder: self.folder.as_deref(),
            find: (!self.neighbours.is_empty()).then_some(&find),
        };
        let loaded = check_with_dependencies(&self.files, self.strict, surroundings);
        loaded
            .report
            .iter()
            .map(|diagnostic| show(diagnostic) + "\n")
            .collect()
    }
}

fn show(diagnostic: &Diagnostic) -> String {
    let place = match &diagnostic.location {
        Some(at) if at.line == 0 => at.file.clone(),
        Some(at) => format!("{}:{}:{}+{}", at.file, at.line, at.column, at.length),
        None => String::from("-"),
    };
    let hint = diagnostic
        .hint
        .as_deref()
        .map(|hint| format!(" | {hint}"))
        .unwrap_or_default();
    let text = format!(
        "{} {} {place} {}{hint}",
        diagnostic.severity.as_str(),
        diagnostic.rule.code(),
        diagnostic.message
    );
    text.replace('\n', "\\n")
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("\\x") {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        bytes.push(u8::from_str_radix(&rest[at + 2..at + 4], 16).expect("two hex digits"));
        rest = &rest[at + 4..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// Lines `text * count`; `\n` in the text is a line break.
fn generate(body: &str) -> Vec<u8> {
    let mut text = String::new();
    for line in body.lines().filter(|line| !line.is_empty()) {
        let (piece, count) = line.rsplit_once(" * ").expect("text * count");
        text.push_str(&piece.replace("\\n", "\n").repeat(count.parse().expect("a count")));
    }
    text.into_bytes()
}

fn refusal(reason: &str) -> Refusal {
    match reason {
        "too-large" => Refusal::TooLarge {
            size_bytes: 104_857_600,
            limit_bytes: module::limits::FILE_BYTES_MAX,
        },
        "escapes" => Refusal::Escapes,
        "loop" => Refusal::LinkLoop,
        "not-a-file" => Refusal::NotAFile,
        "too-many" => Refusal::TooMany,
        reason => Refusal::Unreadable(String::from(reason)),
    }
}
