//! Converts an author's mapping to a [`Manifest`]. Lenient: a value of the wrong form falls back to its
//! default, since the checks report it with a line number; missing values are filled from the tier.

use std::collections::BTreeMap;

use ir::GenerationOptions;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    Access, Compat, Composition, Constraints, Context, ContextMode, EnumStrategy, Failure, Invocation, Io,
    Manifest, Modalities, Policies, Response, RiskRule, RuntimeRequirements, Strictness, Tier, ToolPolicy,
    Tools,
};

impl Manifest {
    pub fn read(map: &Map<String, Value>) -> Self {
        let declared: Option<Tier> = value(map.get("tier"));
        let tier = declared.unwrap_or(Tier::Decision);
        let constraints: Constraints = section(map, "constraints");
        Self {
            name: text(map, "name"),
            version: text(map, "version"),
            responsibility: text(map, "responsibility"),
            tier,
            tier_declared: declared.is_some(),
            strictness: value::<Strictness>(map.get("schema_strictness"))
                .unwrap_or_else(|| tier.strictness()),
            excludes: section(map, "excludes"),
            policies: policies(map, &constraints),
            tools: tools(map),
            response: response(map, tier),
            modalities: section::<Modalities>(map, "modalities"),
            overflow: overflow(map, tier),
            enums: enums(map, tier),
            failure: section::<Failure>(map, "failure"),
            runtime: section::<RuntimeRequirements>(map, "runtime_requirements"),
            generation: section::<GenerationOptions>(map, "generation"),
            io: section::<Io>(map, "io"),
            compat: section::<Compat>(map, "compat"),
            risk_rule: value::<RiskRule>(map.get("meta").and_then(|meta| meta.get("risk_rule")))
                .unwrap_or_default(),
            tests: section(map, "tests"),
            context: context(map),
            composition: section::<Composition>(map, "composition"),
            invocation: section::<Invocation>(map, "invocation"),
            error_codes: error_codes(map),
            constraints,
        }
    }
}

fn value<T: DeserializeOwned>(value: Option<&Value>) -> Option<T> {
    value.and_then(|value| T::deserialize(value).ok())
}

/// An invalid key of a section must not discard the valid ones.
fn section<T: DeserializeOwned + Default>(map: &Map<String, Value>, key: &str) -> T {
    let given = map.get(key);
    value(given)
        .or_else(|| value(Some(&readable::<T>(given?)?)))
        .unwrap_or_default()
}

/// The keys of a section that deserialize individually.
fn readable<T: DeserializeOwned>(given: &Value) -> Option<Value> {
    let alone = |key: &String, value: &Value| Map::from_iter([(key.clone(), value.clone())]);
    let keys = given.as_object()?.iter();
    let good = keys.filter(|(key, given)| value::<T>(Some(&Value::Object(alone(key, given)))).is_some());
    Some(good.map(|(key, given)| (key.clone(), given.clone())).collect())
}

fn text(map: &Map<String, Value>, key: &str) -> String {
    map.get(key)
        .and_then(Value::as_str)
        .map(String::from)
        .unwrap_or_default()
}

/// `network: deny` and `network_allowed: false` are the same policy; of two that disagree, deny takes
/// precedence.
fn policies(map: &Map<String, Value>, constraints: &Constraints) -> Policies {
    let mut policies = BTreeMap::new();
    let mut set = |name: &str, access: Access| {
        let entry = policies.entry(String::from(name)).or_insert(access);
        if access == Access::Deny {
            *entry = Access::Deny;
        }
    };
    for (key, given) in map
        .get("policies")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let access = match given {
            Value::Bool(true) => Access::Allow,
            Value::String(word) if word == "allow" => Access::Allow,
            _ => Access::Deny,
        };
        set(key.strip_suffix("_allowed").unwrap_or(key), access);
    }
    if constraints.no_network {
        set("network", Access::Deny);
    }
    Policies(policies)
}

/// `policies.tools_allowed: false` means that no tool is allowed, regardless of the lists.
fn tools(map: &Map<String, Value>) -> Tools {
    let tools: Tools = section(map, "tools");
    let allowed = map
        .get("policies")
        .and_then(|policies| policies.get("tools_allowed"));
    if allowed == Some(&Value::Bool(false)) {
        return Tools {
            policy: ToolPolicy::DenyByDefault,
            allowed: Vec::new(),
            denied: tools.denied,
        };
    }
    tools
}

fn response(map: &Map<String, Value>, tier: Tier) -> Response {
    let mut response: Response = section(map, "response");
    if map.get("response").and_then(|given| given.get("mode")).is_none() && map.contains_key("tier") {
        response.mode = tier.response_mode();
    }
    response
}

fn overflow(map: &Map<String, Value>, tier: Tier) -> super::Overflow {
    let mut overflow = tier.overflow();
    let given = map.get("overflow");
    let flag = |key: &str| {
        given
            .and_then(|section| section.get(key))
            .and_then(Value::as_bool)
    };
    if let Some(enabled) = flag("enabled") {
        overflow.enabled = enabled;
        if enabled && overflow.max_items == 0 {
            overflow.max_items = Tier::Decision.overflow().max_items;
        }
    }
    if let Some(recoverable) = flag("recoverable") {
        overflow.recoverable = recoverable;
    }
    if let Some(required) = flag("require_suggested_mapping") {
        overflow.require_suggested_mapping = required;
    }
    if let Some(max_items) = given
        .and_then(|section| section.get("max_items"))
        .and_then(Value::as_u64)
    {
        overflow.max_items = max_items.min(crate::limits::INSIGHTS_MAX);
    }
    overflow
}

fn enums(map: &Map<String, Value>, tier: Tier) -> super::Enums {
    let mut enums = tier.enums();
    let given = map.get("enums");
    if let Some(strategy) = value::<EnumStrategy>(given.and_then(|section| section.get("strategy"))) {
        enums.strategy = strategy;
    }
    if let Some(tag) = given
        .and_then(|section| section.get("unknown_tag"))
        .and_then(Value::as_str)
    {
        enums.unknown_tag = String::from(tag);
    }
    enums
}

/// v1 writes `context: fork`, v2 writes `context: {mode: fork}`.
fn context(map: &Map<String, Value>) -> Context {
    match value::<ContextMode>(map.get("context")) {
        Some(mode) => Context {
            mode,
            ..Context::default()
        },
        None => section(map, "context"),
    }
}

fn error_codes(map: &Map<String, Value>) -> BTreeMap<String, String> {
    let mut codes = BTreeMap::new();
    for (code, meaning) in map
        .get("error_codes")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let meaning = meaning.as_str().map_or_else(|| meaning.to_string(), String::from);
        codes.insert(code.clone(), meaning);
    }
    codes
}
