//! Back-ends without configuration: from the environment variables of vendors' tools (keys and URLs), so that
//! a machine set up for those tools needs no configuration. Without any of them, the embedded model is used.

use std::env;

use serde_json::{Value, json};

use super::layer::{Layer, Origin};

/// The environment variables of one vendor's tools.
struct Vendor {
    /// The name of the vendor and of the back-end.
    name: &'static str,
    kind: &'static str,
    /// Variables with the key; the first one that is set is used.
    keys: &'static [&'static str],
    url: Option<&'static str>,
    model: &'static str,
    /// URL and model if the environment has none.
    base_url: Option<&'static str>,
    default_model: Option<&'static str>,
    features_disabled: &'static [&'static str],
}

const VENDORS: [Vendor; 9] = [
    Vendor {
        name: "openai",
        kind: "openai",
        keys: &["OPENAI_API_KEY"],
        url: Some("OPENAI_BASE_URL"),
        model: "OPENAI_MODEL",
        base_url: None,
        default_model: Some("gpt-5.6-terra"),
        features_disabled: &[],
    },
    Vendor {
        name: "anthropic",
        kind: "anthropic",
        keys: &["ANTHROPIC_API_KEY"],
        url: Some("ANTHROPIC_BASE_URL"),
        model: "ANTHROPIC_MODEL",
        base_url: None,
        default_model: Some("claude-haiku-4-5"),
        features_disabled: &[],
    },
    Vendor {
        name: "gemini",
        kind: "gemini",
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        url: Some("GOOGLE_GEMINI_BASE_URL"),
        model: "GEMINI_MODEL",
        base_url: None,
        default_model: Some("gemini-flash-latest"),
        features_disabled: &[],
    },
    Vendor {
        name: "ollama",
        kind: "ollama",
        keys: &["OLLAMA_API_KEY"],
        url: Some("OLLAMA_HOST"),
        model: "OLLAMA_MODEL",
        base_url: None,
        default_model: None,
        features_disabled: &[],
    },
    // The following vendors use OpenAI's dialect. Some have no default model here; the user sets one.
    Vendor {
        base_url: Some("https://openrouter.ai/api/v1"),
        ..openai_compatible("openrouter", &["OPENROUTER_API_KEY"], "OPENROUTER_MODEL")
    },
    Vendor {
        base_url: Some("https://api.deepseek.com/v1"),
        default_model: Some("deepseek-flash"),
        // It supports JSON answers, but not JSON schemas.
        features_disabled: &["supports_json_schema", "supports_seed"],
        ..openai_compatible("deepseek", &["DEEPSEEK_API_KEY"], "DEEPSEEK_MODEL")
    },
    Vendor {
        base_url: Some("https://api.mistral.ai/v1"),
        default_model: Some("mistral-small-latest"),
        features_disabled: &["supports_seed"],
        ..openai_compatible("mistral", &["MISTRAL_API_KEY"], "MISTRAL_MODEL")
    },
    Vendor {
        base_url: Some("https://api.groq.com/openai/v1"),
        ..openai_compatible("groq", &["GROQ_API_KEY"], "GROQ_MODEL")
    },
    Vendor {
        base_url: Some("https://api.x.ai/v1"),
        ..openai_compatible("xai", &["XAI_API_KEY"], "XAI_MODEL")
    },
];

const fn openai_compatible(name: &'static str, keys: &'static [&'static str], model: &'static str) -> Vendor {
    Vendor {
        name,
        kind: "openai",
        keys,
        url: None,
        model,
        base_url: None,
        default_model: None,
        features_disabled: &[],
    }
}

/// The vendors' variables that are set and not empty.
pub(crate) fn found() -> Vec<(&'static str, String)> {
    let names = VENDORS.iter().flat_map(|vendor| {
        let keys = vendor.keys.iter().copied();
        keys.chain(vendor.url).chain([vendor.model])
    });
    names
        .filter_map(|name| Some((name, env::var_os(name)?.into_string().ok()?)))
        .filter(|(_, value)| !value.trim().is_empty())
        .collect()
}

/// A back-end for each vendor with a key or a URL; otherwise the embedded model. Credentials contain the
/// names of the variables, not the keys.
pub(crate) fn layer(found: &[(&'static str, String)]) -> Layer {
    let mut layer = Layer::default();
    let (mut backends, mut credentials) = (Vec::new(), Vec::new());
    let value_of = |name: &str| {
        let mut found = found.iter();
        found
            .find(|(known, _)| *known == name)
            .map(|(name, value)| (*name, value.trim()))
    };
    for vendor in &VENDORS {
        let key = vendor.keys.iter().find_map(|name| value_of(name));
        let url = vendor.url.and_then(value_of);
        let Some((variable, _)) = key.or(url) else {
            continue;
        };
        let mut backend = json!({"name": vendor.name, "kind": vendor.kind});
        if let Some(url) = url.map(|(_, url)| address(vendor.kind, url)) {
            backend["base_url"] = Value::from(url);
        } else if let Some(url) = vendor.base_url {
            backend["base_url"] = Value::from(url);
        }
        // Another URL means another server, so the vendor's default model does not apply.
        let usual = vendor.default_model.filter(|_| url.is_none());
        if let Some(model) = value_of(vendor.model).map(|(_, model)| model).or(usual) {
            backend["default_model"] = Value::from(model);
        }
        if !vendor.features_disabled.is_empty() {
            backend["features_disabled"] = json!(vendor.features_disabled);
        }
        if let Some((variable, _)) = key {
            let place = format!("/credentials/{}", credentials.len());
            layer.origins.insert(place, Origin::Vendor(variable));
            credentials.push(json!({"name": vendor.name, "env": variable}));
            backend["credential"] = Value::from(vendor.name);
        }
        let place = format!("/backends/{}", backends.len());
        layer.origins.insert(place, Origin::Vendor(variable));
        backends.push(backend);
    }
    if backends.is_empty() {
        layer.origins.insert(String::from("/backends/0"), Origin::Default);
        backends.push(json!({"name": "local", "kind": "local"}));
    }
    layer.tree.insert(String::from("backends"), json!(backends));
    layer.tree.insert(String::from("credentials"), json!(credentials));
    layer
}

/// The base URL. Ollama's variable may contain only a host, or the listen address of the server.
fn address(kind: &str, url: &str) -> String {
    let url = url.trim_end_matches('/');
    if kind != "ollama" {
        return String::from(url);
    }
    let (scheme, host) = url.split_once("://").unwrap_or(("http", url));
    let host = host.replace("0.0.0.0", "127.0.0.1");
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match (has_port, scheme) {
        (true, _) | (false, "https") => format!("{scheme}://{host}"),
        (false, _) => format!("{scheme}://{host}:11434"),
    }
}
