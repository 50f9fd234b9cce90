//! `cogn migrate`: converts modules to a newer format. The crate `module` computes the plan; this file prints
//! it, executes it on disk and prints a summary. A module that cannot be migrated does not stop the others.

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use module::migrate::{Decision, DecisionLevel, MigrateError, Plan, diff, plan};
use module::{Diagnostic, FileMap, Format, Severity, Strict, check};
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::clock;
use crate::exit::Exit;
use crate::modules::{Backup, Replacement, Search, interrupted, read_folder, recover, replace};
use crate::output::{Output, hinted};

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// The modules: names or folders.
    #[arg(
        value_name = "MODULE",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    names: Vec<String>,
    /// Migrate all modules found.
    #[arg(short, long)]
    all: bool,
    /// The target format: 2.2 or 2.5.
    #[arg(long, value_name = "FORMAT", default_value = "2.2", value_parser = target)]
    to: Format,
    /// Print the changes as a diff and write nothing.
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Delete the old folder instead of keeping it as a backup.
    #[arg(long)]
    no_backup: bool,
}

fn target(text: &str) -> Result<Format, String> {
    match text.strip_prefix('v').unwrap_or(text) {
        "2.2" => Ok(Format::V2_2),
        "2.5" => Ok(Format::V2_5),
        _ => Err(String::from("must be 2.2 or 2.5")),
    }
}

/// The result of one module.
#[derive(Debug)]
struct Outcome {
    name: String,
    path: PathBuf,
    result: Result<MigrateStatus>,
}

#[derive(Debug)]
enum MigrateStatus {
    /// Rewritten, or would be with `--dry-run`, or already in the target format.
    Planned {
        before: FileMap,
        plan: Plan,
        remaining: Vec<Diagnostic>,
        backup: Option<PathBuf>,
        /// The working folder of the process was inside the module and was moved with the old folder.
        cwd_in_old: bool,
    },
    Refused(MigrateError),
}

impl Migrate {
    pub(crate) fn run(&self, search: &Search, output: &Output) -> Result<Exit> {
        if !self.dry_run {
            self.heal(search, output);
        }
        let stamp = clock::stamp();
        let mut outcomes = Vec::new();
        for (name, path) in self.folders(search)? {
            let result = self.migrate(&path, &stamp);
            let outcome = Outcome { name, path, result };
            if !output.json {
                self.show(&outcome, output)?;
            }
            outcomes.push(outcome);
        }
        let exit = outcomes.iter().map(Outcome::exit).fold(Exit::Success, worse);
        if output.json {
            let modules: Vec<_> = outcomes.iter().map(|outcome| self.describe(outcome)).collect();
            output.json(&json!({ "dry_run": self.dry_run, "modules": modules }))?;
        } else if outcomes.len() != 1 {
            output.note(sum_up(&outcomes, self.dry_run));
        }
        Ok(exit)
    }

    fn folders(&self, search: &Search) -> Result<Vec<(String, PathBuf)>> {
        let found = if self.all {
            search.all()?
        } else {
            let found: Result<Vec<_>> = self.names.iter().map(|name| search.find(name)).collect();
            found?
        };
        Ok(found.into_iter().map(|found| (found.name, found.path)).collect())
    }

    /// Recovers migrations that were killed, in all folders that this command searches.
    fn heal(&self, search: &Search, output: &Output) {
        let literal = self.names.iter().map(|name| parent(Path::new(name)));
        let folders: Vec<PathBuf> = search.roots().iter().cloned().chain(literal).collect();
        for folder in folders {
            for name in interrupted(&folder) {
                match recover(&folder, &name) {
                    Ok(done) => done.iter().for_each(|line| output.note(line)),
                    Err(error) => output.note(format!(
                        "{name}: cannot recover the interrupted migration in {}: {error}",
                        folder.display()
                    )),
                }
            }
        }
    }

    fn migrate(&self, path: &Path, stamp: &str) -> Result<MigrateStatus> {
        let real = fs::canonicalize(path).with_context(|| format!("cannot open {}", path.display()))?;
        let before = read_folder(&real)?;
        let plan = match plan(&before, self.to) {
            Ok(plan) => plan,
            Err(refusal) => return Ok(MigrateStatus::Refused(refusal)),
        };
        let remaining = remaining(&plan);
        let mut backup = None;
        let here = env::current_dir().and_then(fs::canonicalize);
        let cwd_in_old = here.is_ok_and(|here| here.starts_with(&real)) && !self.dry_run && !plan.is_empty();
        if !self.dry_run && !plan.is_empty() {
            backup = replace(&Replacement {
                path: &real,
                before: &before,
                after: &plan.files,
                backup: if self.no_backup {
                    Backup::Discard
                } else {
                    Backup::Keep
                },
                stamp,
            })?;
        }
        Ok(MigrateStatus::Planned {
            before,
            plan,
            remaining,
            backup,
            cwd_in_old,
        })
    }

    fn show(&self, outcome: &Outcome, output: &Output) -> Result<()> {
        let name = &outcome.name;
        match &outcome.result {
            Err(error) => output.error(error),
            Ok(MigrateStatus::Refused(refusal)) => {
                let message = format!("{name} was not migrated: {refusal}");
                output.error(&hinted(message, refusal.hint.clone()));
            }
            Ok(MigrateStatus::Planned {
                before,
                plan,
                remaining,
                backup,
                cwd_in_old,
            }) => {
                if self.dry_run {
                    for difference in diff(before, &plan.files) {
                        for line in difference.text.split_terminator('\n') {
                            output.line(coloured(line))?;
                        }
                    }
                }
                self.tell(name, plan, backup.as_deref(), output);
                if *cwd_in_old {
                    output
                        .note("  your shell is still in the old folder; change to the module's folder again");
                }
                // The reasons for a non-zero exit code are printed also with `--quiet`.
                for line in pressing(plan, remaining) {
                    writeln!(output.stderr(), "{line}").ok();
                }
                for decision in decisions(plan, DecisionLevel::Review) {
                    let place = at(&decision.file, decision.line);
                    output.note(format!("  {} {place}: {}", "review".yellow(), decision.what));
                }
            }
        }
        Ok(())
    }

    fn tell(&self, name: &str, plan: &Plan, backup: Option<&Path>, output: &Output) {
        let name = name.bold();
        if plan.is_empty() {
            let is = if plan.is_above() {
                "already newer:"
            } else {
                "already"
            };
            return output.note(format!("{name}: {is} {}", plan.from));
        }
        let verb = if self.dry_run { "would become" } else { "is now" };
        output.note(format!("{name}: was {}, {verb} {}", plan.from, plan.to));
        if !self.dry_run {
            for change in &plan.changes {
                output.note(format!("  {}: {}", change.file, change.what));
            }
        }
        match backup {
            Some(backup) => output.note(format!("  backup of the old folder: {}", backup.display())),
            None if !self.dry_run => output.note("  the old folder was deleted"),
            None => {}
        }
    }

    fn describe(&self, outcome: &Outcome) -> Value {
        let (name, path) = (&outcome.name, &outcome.path);
        match &outcome.result {
            Err(error) => json!({
                "name": name,
                "path": path,
                "status": "failed",
                "message": format!("{error:#}"),
            }),
            Ok(MigrateStatus::Refused(refusal)) => json!({
                "name": name,
                "path": path,
                "status": "refused",
                "file": refusal.file,
                "line": refusal.line,
                "message": refusal.message,
                "hint": refusal.hint,
            }),
            Ok(MigrateStatus::Planned {
                before,
                plan,
                remaining,
                backup,
                ..
            }) => {
                let status = match plan {
                    plan if plan.is_above() => "above",
                    plan if plan.is_empty() => "already",
                    _ if self.dry_run => "planned",
                    _ => "migrated",
                };
                let text: String = diff(before, &plan.files)
                    .into_iter()
                    .map(|file| file.text)
                    .collect();
                json!({
                    "name": name,
                    "path": path,
                    "status": status,
                    "from": plan.from.as_str(),
                    "to": plan.to.as_str(),
                    "changes": plan.changes,
                    "decisions": plan.decisions,
                    "diagnostics": remaining.iter().map(diagnostic).collect::<Vec<_>>(),
                    "backup": backup,
                    "diff": text,
                })
            }
        }
    }
}

impl Outcome {
    fn exit(&self) -> Exit {
        match &self.result {
            Err(_) => Exit::Error,
            Ok(MigrateStatus::Refused(_)) => Exit::Failure,
            Ok(MigrateStatus::Planned { plan, remaining, .. })
                if plan.needs_decision() || !remaining.is_empty() =>
            {
                Exit::Failure
            }
            Ok(MigrateStatus::Planned { .. }) => Exit::Success,
        }
    }
}

/// The errors of the strict check of the target format. A module that was not changed because it is newer is
/// not checked.
fn remaining(plan: &Plan) -> Vec<Diagnostic> {
    if plan.is_above() {
        return Vec::new();
    }
    let strict = match plan.to {
        Format::V2_5 => Strict::V25,
        _ => Strict::V22,
    };
    let report = check(&plan.files, strict).report;
    let errors = report
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error);
    errors.cloned().collect()
}

/// Lines with the manual changes that are needed before the module is valid.
fn pressing(plan: &Plan, remaining: &[Diagnostic]) -> Vec<String> {
    let mut lines = Vec::new();
    for decision in decisions(plan, DecisionLevel::Must) {
        let place = at(&decision.file, decision.line);
        lines.push(format!("  {} {place}: {}", "decide".red().bold(), decision.what));
    }
    for diagnostic in remaining {
        let place = diagnostic.location.as_ref();
        let place = place.map_or_else(|| String::from("module"), |place| at(&place.file, place.line));
        let code = format!("fix [{}]", diagnostic.rule);
        lines.push(format!("  {} {place}: {}", code.red().bold(), diagnostic.message));
        if let Some(hint) = &diagnostic.hint {
            lines.push(format!("    {} {hint}", "hint:".cyan()));
        }
    }
    lines
}

fn decisions(plan: &Plan, weight: DecisionLevel) -> impl Iterator<Item = &Decision> {
    plan.decisions
        .iter()
        .filter(move |decision| decision.weight == weight)
}

fn at(file: &str, line: usize) -> String {
    match line {
        0 => String::from(file),
        line => format!("{file}:{line}"),
    }
}

fn diagnostic(diagnostic: &Diagnostic) -> Value {
    let place = diagnostic.location.as_ref();
    json!({
        "code": diagnostic.rule.code(),
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "file": place.map(|place| &place.file),
        "line": place.map(|place| place.line),
        "column": place.map(|place| place.column),
        "hint": diagnostic.hint,
    })
}

fn coloured(line: &str) -> String {
    match line.as_bytes().first() {
        _ if line.starts_with("+++") || line.starts_with("---") => line.bold().to_string(),
        Some(b'+') => line.green().to_string(),
        Some(b'-') => line.red().to_string(),
        Some(b'@') => line.cyan().to_string(),
        _ => String::from(line),
    }
}

fn sum_up(outcomes: &[Outcome], dry_run: bool) -> String {
    let mut changed = 0;
    let mut open = 0;
    let mut failed = 0;
    for outcome in outcomes {
        match (&outcome.result, outcome.exit()) {
            (Err(_) | Ok(MigrateStatus::Refused(_)), _) => failed += 1,
            (Ok(MigrateStatus::Planned { plan, .. }), exit) => {
                changed += usize::from(!plan.is_empty());
                open += usize::from(exit == Exit::Failure);
            }
        }
    }
    let verb = if dry_run { "would be migrated" } else { "migrated" };
    let untouched = outcomes.len() - changed - failed;
    format!("{changed} {verb}, {untouched} unchanged, {failed} failed, {open} need manual changes")
}

fn worse(one: Exit, other: Exit) -> Exit {
    match (one, other) {
        (Exit::Error, _) | (_, Exit::Error) => Exit::Error,
        (Exit::Failure, _) | (_, Exit::Failure) => Exit::Failure,
        (Exit::Success, Exit::Success) => Exit::Success,
    }
}

/// The parent folder of a path; `.` for a bare name.
fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}
