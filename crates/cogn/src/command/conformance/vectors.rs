//! `cogn conformance` with vectors: the built-in ones, or those of a folder.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context, Result};
use module::conformance::{ConformanceReport, Outcome, VectorProblem, embedded, run};
use module::limits;
use owo_colors::OwoColorize;
use serde::Serialize;
use serde_json::Value;

use crate::exit::Exit;
use crate::output::{Output, hinted};

/// Limit of files that are read below a folder.
const FILES_MAX: usize = 20_000;
/// Limit of the depth of subfolders.
const DEPTH_MAX: usize = 16;

#[derive(Serialize)]
struct Printed<'a> {
    /// `embedded`, or the folder that was given.
    source: String,
    #[serde(flatten)]
    report: &'a ConformanceReport,
}

/// The contents of a folder: vectors by relative path, and files that could not be read or parsed.
#[derive(Default)]
struct Files {
    vectors: Vec<(String, Value)>,
    problems: Vec<VectorProblem>,
}

/// Runs the vectors up to a level; the built-in ones without a folder.
pub(super) fn run_vectors(folder: Option<&Path>, level: u8, output: &Output) -> Result<Exit> {
    let (source, report) = match folder {
        None => (String::from("embedded"), run(embedded(), level)),
        Some(folder) => (folder.display().to_string(), run_folder(folder, level)?),
    };
    if output.json {
        output.json(&Printed {
            source,
            report: &report,
        })?;
    } else {
        show(&report, output);
    }
    Ok(if report.is_good() {
        Exit::Success
    } else {
        Exit::Failure
    })
}

fn run_folder(folder: &Path, level: u8) -> Result<ConformanceReport> {
    let files = read(folder)?;
    let mut report = run(files.vectors, level);
    report.problems.extend(files.problems);
    if report.vectors.is_empty() && report.problems.is_empty() {
        let hint = "a vector is a JSON file with a `$test` object; see docs/reference/vectors.md";
        return Err(hinted(format!("no vectors in {}", folder.display()), hint));
    }
    Ok(report)
}

fn read(path: &Path) -> Result<Files> {
    let mut files = Files::default();
    let metadata = fs::metadata(path).with_context(|| format!("cannot open {}", path.display()))?;
    if metadata.is_dir() {
        walk(path, "", 0, &mut files)?;
    } else {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        take(path, name.unwrap_or_default(), &mut files);
    }
    Ok(files)
}

fn walk(folder: &Path, prefix: &str, depth: usize, files: &mut Files) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut entries: Vec<_> = entries.collect::<io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        // The type of the entry itself: following symbolic links could loop.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if depth >= DEPTH_MAX {
                files.refuse(name, format!("is more than {DEPTH_MAX} folders deep"));
            } else {
                walk(&entry.path(), &format!("{name}/"), depth + 1, files)?;
            }
        } else if name.ends_with(".json") {
            if files.vectors.len() >= FILES_MAX {
                files.refuse(name, format!("exceeds the limit of {FILES_MAX} files"));
                return Ok(());
            }
            take(&entry.path(), name, files);
        }
    }
    Ok(())
}

fn take(path: &Path, name: String, files: &mut Files) {
    let mut bytes = Vec::new();
    let limit = limits::FILE_BYTES_MAX;
    match fs::File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes)) {
        Err(error) => files.refuse(name, format!("cannot be read: {error}")),
        Ok(read) if read as u64 > limit => files.refuse(name, format!("is larger than {limit} bytes")),
        Ok(_) => match serde_json::from_slice(&bytes) {
            Ok(value) => files.vectors.push((name, value)),
            Err(error) => files.refuse(name, format!("is not JSON: {error}")),
        },
    }
}

impl Files {
    fn refuse(&mut self, path: String, message: String) {
        self.problems.push(VectorProblem { path, message });
    }
}

fn show(report: &ConformanceReport, output: &Output) {
    let mut text = String::new();
    for row in &report.vectors {
        let reason = row.reason.as_deref().unwrap_or_default();
        match row.outcome {
            Outcome::Passed => {}
            Outcome::Failed => {
                let expected = format!("expected to {}", row.expects);
                text.push_str(&format!(
                    "{} {}: {expected}, {reason}\n",
                    "FAIL".red().bold(),
                    row.path
                ));
            }
            Outcome::NotRun => {
                text.push_str(&format!("{} {}: {reason}\n", "not run".yellow().bold(), row.path));
            }
        }
    }
    for problem in &report.problems {
        let VectorProblem { path, message } = problem;
        text.push_str(&format!("{} {path}: {message}\n", "problem".red().bold()));
    }
    if !output.quiet {
        for path in &report.ignored {
            text.push_str(&format!(
                "{} {path}: not a vector, it has no `$test`\n",
                "ignored".dimmed()
            ));
        }
    }
    for level in &report.levels {
        let mark = match (level.failed, level.not_run) {
            (0, 0) => "passed".green().to_string(),
            (0, not_run) => format!("{}, {not_run} not run", "passed".yellow()),
            (failed, _) => format!("passed, {}", format!("{failed} failed").red()),
        };
        text.push_str(&format!(
            "level {}: {} of {} {mark}\n",
            level.level,
            level.passed,
            level.total()
        ));
    }
    text.push_str(&match report.declares_level {
        0 => String::from("declared level: none\n"),
        level => format!("declared level: {}\n", level.bold()),
    });
    // A closed pipe is not a failure.
    output.stdout().write_all(text.as_bytes()).ok();
}
