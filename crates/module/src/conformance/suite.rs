//! A set of vectors run in order.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::evaluator::{Finding, Verdict, judge};
use super::report::{ConformanceReport, Outcome, VectorProblem, VectorResult};
use super::vector::{Expects, Vector};
use crate::envelope::Profile;

/// Runs every vector up to `level_max`. Each is given as its path and its JSON value; the caller reports
/// files that are not JSON.
pub fn run(files: impl IntoIterator<Item = (String, Value)>, level_max: u8) -> ConformanceReport {
    let mut report = ConformanceReport::default();
    let mut vectors = Vec::new();
    for (path, value) in files {
        if value.as_object().is_some_and(|map| !map.contains_key("$test")) {
            report.ignored.push(path);
            continue;
        }
        let mut problems = Vec::new();
        let vector = Vector::read(&path, value, &mut problems);
        report
            .problems
            .extend(problems.into_iter().map(|message| VectorProblem {
                path: path.clone(),
                message,
            }));
        vectors.extend(vector);
    }
    let profiles = profiles(&vectors);
    for vector in vectors.iter().filter(|vector| vector.level <= level_max) {
        let profile = vector
            .profile
            .or_else(|| profiles.get(folder(&vector.path)).copied());
        report.vectors.push(row(vector, profile));
    }
    report.finish()
}

/// The profile of each folder of vectors. If every envelope to be accepted in a folder carries `version`,
/// its absence is an error in that folder. This is inferred from all vectors of the folder.
fn profiles(vectors: &[Vector]) -> BTreeMap<&str, Profile> {
    let mut versioned = BTreeMap::<&str, bool>::new();
    for vector in vectors.iter().filter(|vector| vector.expects == Expects::Accept) {
        let is_plain = vector.category.as_deref() != Some("streaming") && vector.profile.is_none();
        for (_, subject) in vector
            .subjects
            .iter()
            .filter(|(kind, _)| is_plain && *kind == "envelope")
        {
            let all = versioned.entry(folder(&vector.path)).or_insert(true);
            *all &= subject.get("version").is_some();
        }
    }
    let all_versioned = versioned.into_iter().filter(|(_, all)| *all);
    all_versioned
        .map(|(folder, _)| (folder, Profile::Cep22))
        .collect()
}

/// The folder above `valid/` and `invalid/`: the unit for which a profile is inferred.
fn folder(path: &str) -> &str {
    let parent = |path: &str| path.rfind('/').map_or(0, |at| at);
    let near = path.get(..parent(path)).unwrap_or_default();
    match near.rsplit('/').next() {
        Some("valid" | "invalid") => near.get(..parent(near)).unwrap_or_default(),
        _ => near,
    }
}

fn row(vector: &Vector, profile: Option<Profile>) -> VectorResult {
    let (outcome, codes, reason) = match judge(vector, profile) {
        Verdict::NotRun(reason) => (Outcome::NotRun, Vec::new(), Some(reason)),
        Verdict::Found(findings) => {
            let codes: BTreeSet<String> = findings.iter().map(|finding| finding.code.clone()).collect();
            let (outcome, reason) = compare(vector, &findings, &codes);
            (outcome, codes.into_iter().collect(), reason)
        }
    };
    VectorResult {
        path: vector.path.clone(),
        name: vector.name.clone(),
        level: vector.level,
        kind: vector.kind(),
        expects: vector.expects.as_str(),
        outcome,
        codes,
        reason,
    }
}

fn compare(vector: &Vector, findings: &[Finding], codes: &BTreeSet<String>) -> (Outcome, Option<String>) {
    let first = findings.first().map(ToString::to_string);
    match (vector.expects, first) {
        (Expects::Accept, None) => (Outcome::Passed, None),
        (Expects::Accept, Some(first)) => (Outcome::Failed, Some(format!("rejected: {first}"))),
        (Expects::Reject, None) => (Outcome::Failed, Some(String::from("accepted"))),
        (Expects::Reject, Some(first)) => {
            let expected = &vector.error_codes;
            if expected.is_empty() || expected.iter().any(|code| codes.contains(code)) {
                return (Outcome::Passed, Some(first));
            }
            let reason = format!("rejected, but not with {}: {first}", expected.join(" or "));
            (Outcome::Failed, Some(reason))
        }
    }
}
