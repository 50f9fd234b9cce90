//! Configuration keys that have a new name. For one version the old name is read as the new one, with a warning.
//! Keys are renamed in each layer before the layers are merged, so no other code knows the old names.

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::layer::{Layer, Origin};

/// Path of the table, old name, new name. `*` is every item of a list.
const RENAMED: &[(&[&str], &str, &str)] = &[
    (&["media"], "inside", "private_hosts"),
    (&["backends", "*"], "lacks", "features_disabled"),
    (&["backends", "*"], "recipe", "preset"),
    (&["backends", "*", "command"], "pointer", "json_pointer"),
    (&["routing", "retry"], "same_max", "same_backend_max"),
    (&["routing", "retry"], "share", "budget_ratio"),
    (&["routing", "retry"], "reserve", "budget_min"),
    (&["routing", "hedge"], "share", "budget_ratio"),
    (&["routing", "hedge"], "reserve", "budget_min"),
    (&["routing", "breaker"], "failure_share", "failure_ratio"),
];

/// Renames old keys and returns a warning for each. A table that has both names keeps both: the schema then
/// rejects the old one.
pub(super) fn accept_old_names(layer: &mut Layer) -> Vec<String> {
    let mut tree = Value::Object(std::mem::take(&mut layer.tree));
    let mut warnings = Vec::new();
    for (path, old, new) in RENAMED {
        let mut tables = Vec::new();
        rename(&mut tree, path, (old, new), "", &mut tables);
        for table in tables {
            let (from, to) = (format!("{table}/{old}"), format!("{table}/{new}"));
            let place = layer.origins.get(&from).map(Origin::to_string);
            let key = table.trim_start_matches('/').replace('/', ".");
            warnings.push(format!(
                "{}`{key}.{old}` was renamed to `{key}.{new}`; the old name is accepted in this version only",
                place.map(|place| format!("{place}: ")).unwrap_or_default(),
            ));
            move_origins(layer, &from, &to);
        }
    }
    if let Value::Object(tree) = tree {
        layer.tree = tree;
    }
    warnings
}

/// Collects the pointers of the tables in which the key was renamed.
fn rename(value: &mut Value, path: &[&str], names: (&str, &str), pointer: &str, tables: &mut Vec<String>) {
    let Some((step, rest)) = path.split_first() else {
        let (old, new) = names;
        if let Value::Object(table) = value
            && !table.contains_key(new)
            && let Some(value) = table.remove(old)
        {
            table.insert(String::from(new), value);
            tables.push(String::from(pointer));
        }
        return;
    };
    match (*step, value) {
        ("*", Value::Array(items)) => {
            for (index, item) in items.iter_mut().enumerate() {
                rename(item, rest, names, &format!("{pointer}/{index}"), tables);
            }
        }
        // Environment variables name the items of a list: `COGN_BACKENDS__FAST__PRESET`.
        ("*", Value::Object(items)) => {
            for (name, item) in items {
                rename(item, rest, names, &format!("{pointer}/{name}"), tables);
            }
        }
        (step, value) => {
            if let Some(inner) = value.get_mut(step) {
                rename(inner, rest, names, &format!("{pointer}/{step}"), tables);
            }
        }
    }
}

fn move_origins(layer: &mut Layer, from: &str, to: &str) {
    let moved: Vec<(String, String)> = layer
        .origins
        .keys()
        .filter_map(|pointer| {
            let rest = pointer.strip_prefix(from)?;
            (rest.is_empty() || rest.starts_with('/')).then(|| (pointer.clone(), format!("{to}{rest}")))
        })
        .collect();
    for (old, new) in moved {
        if let Some(origin) = layer.origins.remove(&old) {
            layer.origins.insert(new, origin);
        }
    }
}
