use ir::operation::Operation;
use serde_json::{Map, Value, json};

use super::SCHEMA;
use crate::config::settings::Settings;
use crate::config::tests::merged;

/// The defaults that the reference page states for keys which `defaults.toml` lacks.
#[test]
fn documented_defaults_have_the_effect_of_missing_keys() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let mut stated = Map::new();
    for (name, section) in schema["properties"].as_object().expect("sections") {
        stated.insert(name.clone(), stated_defaults(section));
    }
    let jwt = "jwks = \"keys.json\"\nissuer = \"i\"\naudience = \"a\"\nalgorithms = [\"RS256\"]\n";
    let program = "[[backends]]\nname = \"b\"\nkind = \"command\"\noperations = [\"chat_completions\"]\ncommand = { argv = [\"x\"] }\n";
    let text = format!("[auth.jwt]\n{jwt}{program}");
    let plain = merged(&[("cogn.toml", &text)]);
    let mut full = plain.clone();
    let mut backend = stated_defaults(&schema["properties"]["backends"]["items"]);
    // The base of every list is the one of the plain configuration.
    stated.remove("backends");
    stated.remove("credentials");
    overlay(&mut full.tree, stated);
    let own = full.tree["backends"][0].as_object_mut().expect("a back-end");
    overlay(own, std::mem::take(backend.as_object_mut().expect("a table")));
    assert_ne!(plain.tree, full.tree, "no default is stated");
    let [plain, full] = [plain, full].map(|merged| {
        let settings = Settings::of(&merged).expect("it is valid");
        let fleet = settings.routing.fleet(engine::fleet::Timeouts::default());
        let program = settings.backends[0].program().expect("a program");
        let options = program
            .options("b", Operation::ChatCompletions)
            .expect("a program");
        let backend = (settings.backends[0].weight, settings.backends[0].priority);
        let (auth, media, network) = (settings.auth, settings.media, settings.network);
        format!("{fleet:#?} {options:#?} {backend:?} {auth:#?} {media:#?} {network:#?}")
    });
    assert_eq!(plain, full);
}

/// A table with the defaults of a section, at all depths.
fn stated_defaults(table: &Value) -> Value {
    let mut defaults = Map::new();
    for (key, value) in table["properties"].as_object().into_iter().flatten() {
        if let Some(default) = value.get("default") {
            defaults.insert(key.clone(), default.clone());
        } else if value["properties"].is_object() {
            let inner = stated_defaults(value);
            if inner.as_object().is_some_and(|inner| !inner.is_empty()) {
                defaults.insert(key.clone(), inner);
            }
        }
    }
    Value::Object(defaults)
}

fn overlay(tree: &mut Map<String, Value>, values: impl IntoIterator<Item = (String, Value)>) {
    for (key, value) in values {
        match (tree.get_mut(&key), value) {
            (Some(Value::Object(own)), Value::Object(values)) => overlay(own, values),
            (_, value) if value != json!({}) => {
                tree.insert(key, value);
            }
            _ => {}
        }
    }
}
