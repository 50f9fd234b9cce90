//! With nothing configured, the keys and addresses that vendors' own tools read are picked up, so that a
//! machine on which those tools work needs no configuration.

use std::env;

use serde_json::json;

use super::layer::{Layer, Origin};

/// Variables by vendor: the back-end's kind, its key, its base URL, and the base URL when none is given.
const VENDORS: [(&str, &str, &str, &str); 2] = [
    (
        "openai",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        providers::openai::BASE_URL,
    ),
    (
        "anthropic",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        providers::anthropic::BASE_URL,
    ),
];

/// The vendors' variables that are set to something.
pub(crate) fn found() -> Vec<(&'static str, String)> {
    VENDORS
        .iter()
        .flat_map(|(_, key, url, _)| [*key, *url])
        .filter_map(|name| Some((name, env::var_os(name)?.into_string().ok()?)))
        .filter(|(_, value)| !value.trim().is_empty())
        .collect()
}

/// A back-end for each vendor of which something was found. Keys go in by the name of their variable.
pub(crate) fn layer(found: &[(&'static str, String)]) -> Layer {
    let mut backends = Vec::new();
    let mut credentials = Vec::new();
    let mut layer = Layer::default();
    let value_of = |name: &str| {
        found
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.trim())
    };
    for (kind, key, url, default_url) in VENDORS {
        let (has_key, base_url) = (value_of(key).is_some(), value_of(url));
        if !has_key && base_url.is_none() {
            continue;
        }
        let origin = Origin::Vendor(if has_key { key } else { url });
        layer
            .origins
            .insert(format!("/backends/{}", backends.len()), origin.clone());
        let mut backend = json!({"name": kind, "kind": kind, "base_url": base_url.unwrap_or(default_url)});
        if has_key {
            layer
                .origins
                .insert(format!("/credentials/{}", credentials.len()), origin);
            credentials.push(json!({"name": kind, "env": key}));
            backend["credential"] = json!(kind);
        }
        backends.push(backend);
    }
    if !backends.is_empty() {
        layer.tree.insert(String::from("backends"), json!(backends));
        layer.tree.insert(String::from("credentials"), json!(credentials));
    }
    layer
}
