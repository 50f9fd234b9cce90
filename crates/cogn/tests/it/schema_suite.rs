//! The JSON Schema Test Suite (draft-07 and 2020-12), as contained in the source archive of the Python package
//! `jsonschema`, through admission and validation. The failures are listed in `schema_suite_failures.txt`:
//! schemas that refer to other documents are refused by design.

use std::collections::BTreeSet;
use std::fs;

use module::schema::CompiledSchema;
use serde_json::{Value, json};

const VERSION: &str = "4.26.0";
const SHA256: &str = "0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326";
const DRAFTS: [(&str, &str); 2] = [
    ("draft7", "http://json-schema.org/draft-07/schema#"),
    ("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
];
/// A suite that was not found would pass.
const TESTS_MIN: usize = 1_500;

#[test]
fn json_schema_test_suite_passes() {
    let folder = tempfile::tempdir().unwrap();
    let archive = testkit::tools::unpack_source_archive("jsonschema", VERSION, SHA256, folder.path());
    let mut failures = BTreeSet::new();
    let mut tests = 0;
    for (draft, uri) in DRAFTS {
        for entry in fs::read_dir(archive.join("json/tests").join(draft)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                continue;
            }
            let name = format!("{draft}/{}", path.file_name().unwrap().display());
            let groups: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            for group in groups.as_array().unwrap() {
                tests += check_group(&name, uri, group, &mut failures);
            }
        }
    }
    assert!(tests >= TESTS_MIN, "{tests}");
    let expected: BTreeSet<String> = include_str!("schema_suite_failures.txt")
        .lines()
        .map(String::from)
        .collect();
    let new: Vec<_> = failures.difference(&expected).collect();
    let gone: Vec<_> = expected.difference(&failures).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "new failures: {new:#?}\nno longer failing: {gone:#?}"
    );
}

fn check_group(name: &str, uri: &str, group: &Value, failures: &mut BTreeSet<String>) -> usize {
    let mut schema = group["schema"].clone();
    if let Value::Object(map) = &mut schema {
        map.entry("$schema").or_insert_with(|| json!(uri));
    }
    let place = format!("{name}: {}", group["description"].as_str().unwrap());
    let tests = group["tests"].as_array().unwrap();
    let Ok(compiled) = CompiledSchema::of_request(schema) else {
        failures.insert(format!("{place}: refused"));
        return tests.len();
    };
    for test in tests {
        let errors = compiled.errors(&test["data"]).count();
        let valid = compiled.is_valid(&test["data"]);
        assert_eq!(valid, errors == 0, "{place}");
        if test["valid"] != json!(valid) {
            failures.insert(format!("{place}: {}", test["description"].as_str().unwrap()));
        }
    }
    tests.len()
}
