//! Strict parser of a vector file. Unknown keys are reported as problems of the vector: a test whose
//! condition is not understood proves nothing.

use serde_json::{Map, Value};

use crate::envelope::Profile;

/// Levels of conformance, each including those below.
pub const LEVELS: std::ops::RangeInclusive<u8> = 1..=4;

/// Keys that may contain the subject of a vector.
const SUBJECTS: &[&str] = &["envelope", "input", "events", "composition"];
/// Kinds of other suites that require more than a check: a registry, a scripted run, a project.
const FOREIGN: &[&str] = &["registry", "runtime", "core"];
const TEST_KEYS: &[&str] = &[
    "name",
    "description",
    "expects",
    "conformance_level",
    "category",
    "error_codes",
    "profile",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expects {
    Accept,
    Reject,
}

impl Expects {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Reject => "reject",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Vector {
    /// Path of the file, for reports.
    pub path: String,
    pub name: String,
    pub expects: Expects,
    pub level: u8,
    pub category: Option<String>,
    /// One of these must be among the codes of a rejection; empty accepts any code.
    pub error_codes: Vec<String>,
    /// The profile that the vector itself names.
    pub profile: Option<Profile>,
    /// A module against which envelope and input are checked: `manifest` and `schema`.
    pub module: Option<Value>,
    /// Subjects by kind, in the order of the file.
    pub subjects: Vec<(&'static str, Value)>,
    /// Kinds that are recognised but cannot be run here.
    pub foreign: Vec<&'static str>,
}

impl Vector {
    /// Parses a vector and adds its faults to `problems`. `None` if too little is valid to run it. The
    /// caller must have excluded files without `$test`, which are not vectors.
    pub fn read(path: &str, value: Value, problems: &mut Vec<String>) -> Option<Self> {
        let Value::Object(mut map) = value else {
            problems.push(String::from("a vector is a JSON object"));
            return None;
        };
        let Some(Value::Object(test)) = map.remove("$test") else {
            problems.push(String::from("`$test` is not an object"));
            return None;
        };
        for key in test.keys().filter(|key| !TEST_KEYS.contains(&key.as_str())) {
            problems.push(format!("unknown key `$test.{key}`"));
        }
        let mut vector = Self {
            path: String::from(path),
            name: text(&test, "name", problems).unwrap_or_else(|| String::from(path)),
            expects: expects(&test, problems)?,
            level: level(&test, problems)?,
            category: text(&test, "category", problems),
            error_codes: error_codes(&test, problems),
            profile: profile(&test, problems),
            module: None,
            subjects: Vec::new(),
            foreign: Vec::new(),
        };
        // Not used, but a wrong type indicates another format.
        text(&test, "description", problems);
        for (key, value) in map {
            vector.take(&key, value, problems);
        }
        if vector.subjects.is_empty() && vector.foreign.is_empty() {
            problems.push(format!("missing one of {}", SUBJECTS.join(", ")));
            return None;
        }
        Some(vector)
    }

    fn take(&mut self, key: &str, value: Value, problems: &mut Vec<String>) {
        let known = |names: &[&'static str]| names.iter().copied().find(|name| *name == key);
        if let Some(kind) = known(SUBJECTS) {
            self.subjects.push((kind, value));
        } else if let Some(kind) = known(FOREIGN) {
            self.foreign.push(kind);
        } else if key == "module" {
            self.module = Some(value);
        } else if !matches!(key, "$schema" | "$comment") {
            problems.push(format!("unknown key `{key}`"));
        }
    }

    /// The kinds of its subjects, for reports.
    pub fn kind(&self) -> String {
        let kinds: Vec<_> = self
            .subjects
            .iter()
            .map(|(kind, _)| *kind)
            .chain(self.foreign.iter().copied())
            .collect();
        kinds.join("+")
    }
}

fn text(test: &Map<String, Value>, key: &str, problems: &mut Vec<String>) -> Option<String> {
    match test.get(key) {
        None => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => {
            problems.push(format!("`$test.{key}` is not a string"));
            None
        }
    }
}

fn expects(test: &Map<String, Value>, problems: &mut Vec<String>) -> Option<Expects> {
    match test.get("expects").and_then(Value::as_str) {
        Some("accept") => Some(Expects::Accept),
        Some("reject") => Some(Expects::Reject),
        _ => {
            problems.push(String::from("`$test.expects` is neither `accept` nor `reject`"));
            None
        }
    }
}

fn level(test: &Map<String, Value>, problems: &mut Vec<String>) -> Option<u8> {
    let given = test.get("conformance_level").and_then(Value::as_u64);
    let level = given
        .and_then(|level| u8::try_from(level).ok())
        .filter(|level| LEVELS.contains(level));
    if level.is_none() {
        problems.push(String::from(
            "`$test.conformance_level` is not a number from 1 to 4",
        ));
    }
    level
}

fn error_codes(test: &Map<String, Value>, problems: &mut Vec<String>) -> Vec<String> {
    let Some(codes) = test.get("error_codes") else {
        return Vec::new();
    };
    let texts = codes.as_array().and_then(|codes| {
        let texts = codes.iter().map(|code| code.as_str().map(String::from));
        texts.collect::<Option<Vec<_>>>()
    });
    texts.unwrap_or_else(|| {
        problems.push(String::from("`$test.error_codes` is not a list of strings"));
        Vec::new()
    })
}

fn profile(test: &Map<String, Value>, problems: &mut Vec<String>) -> Option<Profile> {
    let name = text(test, "profile", problems)?;
    let profile = Profile::find(&name);
    if profile.is_none() {
        problems.push(format!("`$test.profile` names an unknown profile `{name}`"));
    }
    profile
}
