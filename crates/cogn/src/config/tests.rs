use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::layer::{Layer, Origin};
use super::{Merged, Sources, problems};

const EXAMPLE: &str = r#"
[[credentials]]
name = "openai"
env = "OPENAI_API_KEY"
[[backends]]
name = "fast"
kind = "openai"
base_url = "http://127.0.0.1:9100/v1"
model = "mock"
credential = "openai"
features = ["supports_json_schema"]
weight = 100
priority = 10
"#;

fn layer(name: &str, text: &str) -> Layer {
    Layer::of_toml(Path::new(name), text).unwrap_or_else(|(message, _)| panic!("{message}"))
}

/// Merges texts as files would merge, weakest first, over the built-in defaults.
fn merged(texts: &[(&str, &str)]) -> Merged {
    let defaults = Sources::default().merge().expect("the defaults are good");
    let mut layers = vec![Layer {
        tree: defaults.tree,
        origins: Default::default(),
    }];
    layers.extend(texts.iter().map(|(name, text)| layer(name, text)));
    Merged::of(layers)
}

fn found(texts: &[(&str, &str)]) -> Vec<(String, String, Option<String>)> {
    let problems = problems(&merged(texts)).expect("the schema compiles");
    problems
        .into_iter()
        .map(|problem| (problem.key, problem.message, problem.hint))
        .collect()
}

#[test]
fn defaults_alone_are_good() {
    assert_eq!(found(&[]), []);
}

#[test]
fn a_full_example_is_good() {
    assert_eq!(found(&[("cogn.toml", EXAMPLE)]), []);
}

#[test]
fn later_layers_change_one_value_of_a_named_item() {
    let merged = merged(&[
        ("a.toml", EXAMPLE),
        ("b.toml", "[[backends]]\nname = \"fast\"\nweight = 0\n"),
    ]);
    let backend = &merged.tree["backends"][0];
    assert_eq!(merged.tree["backends"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&backend["weight"], &backend["priority"]),
        (&json!(0), &json!(10))
    );
    let place = |pointer: &str| match merged.origin(pointer) {
        Some(Origin::File { path, location }) => (path.clone(), location.line),
        other => panic!("{other:?}"),
    };
    assert_eq!(place("/backends/0/weight"), (PathBuf::from("b.toml"), 3));
    assert_eq!(place("/backends/0/priority"), (PathBuf::from("a.toml"), 13));
}

#[test]
fn lists_without_names_are_replaced_whole() {
    let other = "[[backends]]\nname = \"fast\"\nfeatures = []\n";
    let merged = merged(&[("a.toml", EXAMPLE), ("b.toml", other)]);
    assert_eq!(merged.tree["backends"][0]["features"], json!([]));
}

#[test]
fn a_misspelt_key_gets_the_nearest_known_one() {
    let text = EXAMPLE.replace("weight", "wieght");
    let expected = (
        String::from("backends.fast.wieght"),
        String::from("unknown key `wieght`"),
        Some(String::from("did you mean `weight`?")),
    );
    assert_eq!(found(&[("cogn.toml", &text)]), [expected]);
}

#[test]
fn every_problem_is_found_in_one_go() {
    let text = "[timeouts]\nidle_ms = \"long\"\n[[backends]]\nname = \"x\"\nkind = \"opanai\"\ncredential = \"nobody\"\n[timouts]\n";
    let keys: Vec<_> = found(&[("cogn.toml", text)])
        .into_iter()
        .map(|(key, ..)| key)
        .collect();
    for key in [
        "timeouts.idle_ms",
        "backends.x.kind",
        "backends.x.credential",
        "timouts",
    ] {
        assert!(keys.iter().any(|found| found == key), "{key} not in {keys:?}");
    }
}

#[test]
fn variables_overrule_what_is_below_them() {
    let variables = [("COGN_TIMEOUTS__IDLE_MS", "5")];
    let variables = variables
        .map(|(name, value)| (String::from(name), String::from(value)))
        .to_vec();
    let merged = Sources {
        variables,
        ..Sources::default()
    }
    .merge()
    .expect("it merges");
    assert_eq!(merged.tree["timeouts"]["idle_ms"], json!(5));
    let variable = Origin::Environment(String::from("COGN_TIMEOUTS__IDLE_MS"));
    assert_eq!(merged.origin("/timeouts/idle_ms"), Some(&variable));
    assert_eq!(merged.origin("/timeouts/total_ms"), Some(&Origin::Default));
}

#[test]
fn vendors_are_picked_up_only_when_nothing_is_configured() {
    let vendors = vec![("OPENAI_API_KEY", String::from("sk-secret"))];
    let merged = Sources {
        vendors: vendors.clone(),
        ..Sources::default()
    }
    .merge()
    .expect("it merges");
    assert_eq!(merged.tree["backends"][0]["kind"], json!("openai"));
    assert_eq!(
        merged.tree["credentials"],
        json!([{"name": "openai", "env": "OPENAI_API_KEY"}])
    );
    assert!(
        !Value::Object(merged.tree.clone())
            .to_string()
            .contains("sk-secret")
    );
    assert_eq!(problems(&merged).expect("the schema compiles"), []);

    let variables = vec![(String::from("COGN_BACKENDS"), String::from("[]"))];
    let merged = Sources {
        vendors,
        variables,
        ..Sources::default()
    }
    .merge()
    .expect("it merges");
    assert_eq!(merged.tree["backends"], json!([]));
}

#[test]
fn broken_toml_names_its_line() {
    let (_, at) =
        Layer::of_toml(Path::new("cogn.toml"), "[timeouts]\nidle_ms = \n").expect_err("it is broken");
    assert_eq!(at.line, 2);
}
