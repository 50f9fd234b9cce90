use std::path::Path;

use serde_json::{Value, json};

use super::accept_old_names;
use crate::config::layer::{Layer, Origin};
use crate::config::{Merged, problems};

#[test]
fn accepts_old_key_names_with_a_warning() {
    let text = r#"
[media]
inside = ["media.lan:8080"]
[[backends]]
name = "a"
lacks = ["supports_tools"]
recipe = "piper"
command = { pointer = "/text" }
[routing]
retry = { same_max = 1, share = 0.5, reserve = 2 }
hedge = { share = 0.25, reserve = 3 }
breaker = { failure_share = 0.75 }
"#;
    let mut layer = Layer::of_toml(Path::new("cogn.toml"), text).expect("it is TOML");
    let warnings = accept_old_names(&mut layer);
    assert_eq!(warnings.len(), 10, "{warnings:#?}");
    assert!(
        warnings[0].starts_with("cogn.toml:3:1: `media.inside` was renamed to `media.private_hosts`"),
        "{warnings:#?}"
    );
    let tree = Value::Object(layer.tree.clone());
    for (pointer, value) in [
        ("/media/private_hosts/0", json!("media.lan:8080")),
        ("/backends/0/features_disabled/0", json!("supports_tools")),
        ("/backends/0/preset", json!("piper")),
        ("/backends/0/command/json_pointer", json!("/text")),
        ("/routing/retry/same_backend_max", json!(1)),
        ("/routing/retry/budget_ratio", json!(0.5)),
        ("/routing/retry/budget_min", json!(2)),
        ("/routing/hedge/budget_ratio", json!(0.25)),
        ("/routing/hedge/budget_min", json!(3)),
        ("/routing/breaker/failure_ratio", json!(0.75)),
    ] {
        assert_eq!(tree.pointer(pointer), Some(&value), "{pointer}");
        assert!(layer.origins.contains_key(pointer), "{pointer} has its place");
    }
    assert!(
        accept_old_names(&mut layer).is_empty(),
        "nothing is renamed twice"
    );
}

#[test]
fn accepts_old_key_names_in_variables() {
    let mut layer = Layer::default();
    let origin = Origin::Environment(String::from("COGN_BACKENDS__A__RECIPE"));
    layer.set(&["backends", "a", "recipe"], json!("piper"), origin);
    let warnings = accept_old_names(&mut layer);
    assert!(warnings[0].contains("COGN_BACKENDS__A__RECIPE"), "{warnings:#?}");
    assert_eq!(layer.tree["backends"]["a"]["preset"], "piper");
}

#[test]
fn a_table_with_both_names_keeps_both() {
    let text = "[media]\ninside = [\"a.lan\"]\nprivate_hosts = [\"b.lan\"]\n";
    let mut layer = Layer::of_toml(Path::new("cogn.toml"), text).expect("it is TOML");
    assert!(accept_old_names(&mut layer).is_empty());
    let problems = problems(&Merged::of([layer]));
    assert!(
        problems
            .iter()
            .any(|problem| format!("{problem:?}").contains("inside")),
        "{problems:#?}"
    );
}
