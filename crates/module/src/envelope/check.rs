//! Converts any bytes to a valid envelope. It never panics and never changes data; repairs and the reason of
//! a refusal are recorded in the envelope.

use serde_json::{Map, Value};

use super::confidence::{check_aggregation, check_confidence_fields};
use super::error::ErrorBody;
use super::failure::{check_failure, replace_custom_risk, with_partial};
use super::meta::{Meta, Risk};
use super::overflow::check_overflow;
use super::repair::{RepairDefaults, repair_meta};
use super::repair_log::RepairLog;
use super::reply::{self, Reason, Unreadable, looks_like_envelope};
use super::risk::{aggregate, escalate};
use super::runtime_meta::{CheckOptions, RuntimeMeta};
use super::schema_errors::{answer_error, check_section, error_of};
use super::small_map::member;
use super::structure::{Profile, ShapeViolation, kind};
use super::tier_rules::{TierVerdict, check_gate};
use super::unreadable::refuse_unreadable;
use super::wrap::{EnvelopeParts, split_parts, wraps};
use super::{Envelope, EnvelopeBody};
use crate::code::Code;
use crate::context;
use crate::limits;
use crate::manifest::EnumStrategy;
use crate::module::Module;
use crate::schema::{Contract, Section};

/// The result of checking a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Always a valid envelope.
    pub envelope: Envelope,
    pub reading: ReplyForm,
}

/// The form of the answer in the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyForm {
    /// The reply was one object and no other text.
    Whole,
    /// The object was in a fence, in prose, or among others.
    Embedded,
    /// The reply contained no readable object.
    Unreadable,
}

/// Converts a model's reply to an envelope.
pub fn check_reply(module: &Module, reply: &[u8], options: &CheckOptions) -> Outcome {
    match reply::read(reply) {
        Ok(objects) => {
            let reading = if objects.is_only_text {
                ReplyForm::Whole
            } else {
                ReplyForm::Embedded
            };
            let object = choose(module, objects.list);
            Outcome {
                envelope: check_object(module, object, options),
                reading,
            }
        }
        Err(unreadable) => Outcome {
            envelope: seal(
                refuse_unreadable(module, unreadable),
                options,
                RepairLog::default(),
            ),
            reading: ReplyForm::Unreadable,
        },
    }
}

/// Converts an object that is already parsed.
pub fn check_object(module: &Module, object: Map<String, Value>, options: &CheckOptions) -> Envelope {
    let mut repairs = RepairLog::default();
    let envelope = match split_parts(object, wraps(module), &mut repairs) {
        Ok(parts) if parts.ok => check_success(module, parts, &mut repairs),
        Ok(parts) => check_failure(module, parts, &mut repairs),
        Err(refused) => {
            let is_bare = refused.violation.pointer.is_empty();
            let mut error = answer_error(&[refused.violation]);
            if is_bare {
                error = error.suggest(
                    "answer with {ok, meta, data} as required by the prompt, or set \
                     compat.runtime_auto_wrap in module.yaml to have bare objects wrapped",
                );
            }
            refuse(module, error, Some(refused.data), Map::new())
        }
    };
    seal(envelope, options, repairs)
}

/// Checks an envelope that a runtime has produced, for example from a stream: its runtime fields and
/// annotations are trusted and kept, and its failures are passed through.
pub fn check_envelope(module: &Module, envelope: Value) -> Envelope {
    let Value::Object(mut map) = envelope else {
        let unreadable = Unreadable {
            reason: Reason::NotAnObject(kind(&envelope)),
            offset: None,
            salvaged: None,
        };
        return refuse_unreadable(module, unreadable);
    };
    if map.get("ok") == Some(&Value::Bool(false)) {
        match Envelope::from_value(Value::Object(map), Profile::Cognitive) {
            Ok(envelope) => return envelope,
            Err(found) => return Envelope::failure(answer_error(&found)),
        }
    }
    let mut options = CheckOptions::default();
    let mut repairs = Vec::new();
    if let Some(Value::Object(meta)) = map.get_mut("meta") {
        options.facts = RuntimeMeta::take(meta);
        if let Some(Value::Array(earlier)) = meta.shift_remove("repairs") {
            repairs = earlier;
        }
    }
    let (annotations, map): (Map<_, _>, Map<_, _>) =
        map.into_iter().partition(|(key, _)| key.starts_with('_'));
    let mut envelope = check_object(module, map, &options);
    add_items(&mut envelope.meta.more, "repairs", repairs);
    for (key, value) in annotations {
        match value {
            Value::Array(items) if key == "_warnings" => add_items(&mut envelope.annotations, &key, items),
            value => {
                envelope.annotations.insert(key, value);
            }
        }
    }
    envelope
}

/// Prepends `earlier` items to a list; duplicates are listed once.
fn add_items(map: &mut Map<String, Value>, key: &str, mut earlier: Vec<Value>) {
    if let Some(Value::Array(later)) = map.get_mut(key) {
        later.retain(|item| !earlier.contains(item));
        earlier.append(later);
    }
    if !earlier.is_empty() {
        map.insert(String::from(key), Value::Array(earlier));
    }
}

/// Of several objects the last that matches the module, else the last.
fn choose(module: &Module, mut list: Vec<Map<String, Value>>) -> Map<String, Value> {
    if list.len() > 1
        && let Some(index) = list.iter_mut().rposition(|object| fits(module, object))
    {
        return list.swap_remove(index);
    }
    list.pop().unwrap_or_default()
}

fn fits(module: &Module, object: &mut Map<String, Value>) -> bool {
    let contract = module.answer_contract();
    let Ok(validator) = contract.validator(Section::Data) else {
        return false;
    };
    let is_good = |data: &Value| {
        data.get("rationale").is_some() && validator.is_none_or(|validator| validator.is_valid(data))
    };
    if looks_like_envelope(object) {
        return match object.get("ok") {
            Some(Value::Bool(false)) => object.get("error").is_some_and(Value::is_object),
            _ => object.get("data").is_some_and(is_good),
        };
    }
    let value = Value::Object(std::mem::take(object));
    let good = is_good(&value);
    if let Value::Object(map) = value {
        *object = map;
    }
    good
}

/// Writes the runtime's fields last, so that no check treats them as the model's output.
fn seal(mut envelope: Envelope, options: &CheckOptions, repairs: RepairLog) -> Envelope {
    options.facts.write(&mut envelope.meta.more);
    if let Some(repairs) = repairs.into_value() {
        envelope.meta.more.insert(String::from("repairs"), repairs);
    }
    envelope
}

/// A failure of the answer, with its data as partial data if the module allows it.
pub(super) fn refuse(
    module: &Module,
    error: ErrorBody,
    data: Option<Map<String, Value>>,
    annotations: Map<String, Value>,
) -> Envelope {
    let partial = data.filter(|_| module.manifest.failure.partial_allowed);
    with_partial(Envelope::failure(error), partial, annotations)
}

fn check_success(module: &Module, parts: EnvelopeParts, repairs: &mut RepairLog) -> Envelope {
    let annotations = parts.annotations;
    let mut found = parts.violations;
    let closed = [("error", &parts.error), ("partial_data", &parts.partial_data)];
    for (key, _) in closed.into_iter().filter(|(_, part)| part.is_some()) {
        let message = format!("a success must not have `{key}`");
        found.push(ShapeViolation::new(
            format!("/{key}"),
            "additionalProperties",
            message,
        ));
    }
    let mut data = match parts.data {
        Some(Value::Object(data)) => data,
        other => {
            found.push(match other {
                Some(other) => {
                    let message = format!("must be an object, not {}", kind(&other));
                    ShapeViolation::new("/data", "type", message)
                }
                None => ShapeViolation::new("", "required", "`data` is missing from a success"),
            });
            return refuse(module, answer_error(&found), None, annotations);
        }
    };
    require_confidence(module, parts.meta.as_ref(), &data, &mut found);
    let aggregated = aggregate(module.manifest.risk_rule, &data);
    let basis = RepairDefaults {
        tier: module.manifest.tier,
        confidence: promoted_confidence(parts.wrapped, &data),
        risk: aggregated.unwrap_or(Risk::Medium),
        explain: member(&data, "rationale").and_then(Value::as_str),
        explain_chars: limits::EXPLAIN_CHARS_TAKEN,
    };
    let mut meta = repair_meta(parts.meta, basis, repairs, &mut found);
    let checked = check_parts(module, &mut meta, &mut data, &mut found);
    if let Some(error) = checked
        .err()
        .or_else(|| (!found.is_empty()).then(|| Box::new(answer_error(&found))))
    {
        repairs.drop_meta_entries();
        return refuse(module, *error, Some(data), annotations);
    }
    replace_custom_risk(&mut meta, repairs);
    escalate(&mut meta, aggregated, repairs);
    if let Err(error) = check_rules(module, &mut meta, &mut data) {
        repairs.drop_meta_entries();
        return refuse(module, *error, Some(data), annotations);
    }
    let envelope = finish(module, meta, data, annotations);
    if !envelope.is_ok() {
        repairs.drop_meta_entries();
    }
    envelope
}

/// Applies tier rules and adds warnings to an answer that is otherwise valid.
fn finish(
    module: &Module,
    meta: Map<String, Value>,
    data: Map<String, Value>,
    mut annotations: Map<String, Value>,
) -> Envelope {
    let mut warnings: Vec<Value> = check_aggregation(&meta, &data).into_iter().collect();
    let meta = Meta::from_map(meta);
    match check_gate(&module.manifest, &meta) {
        TierVerdict::Pass => {}
        TierVerdict::Warn(warning) => warnings.push(warning),
        TierVerdict::Refuse(error) => return refuse(module, *error, Some(data), annotations),
    }
    if !warnings.is_empty() {
        annotations.insert(String::from("_warnings"), Value::Array(warnings));
    }
    let emitted = context::emitted(module, &mut annotations);
    if !emitted.is_empty() {
        annotations.insert(String::from(context::EMITTED_KEY), Value::Object(emitted));
    }
    Envelope {
        meta,
        body: EnvelopeBody::Success { data },
        annotations,
    }
}

/// Older answers have their confidence inside the data. It is copied, not moved: data does not change.
fn promoted_confidence(wrapped: bool, data: &Map<String, Value>) -> Value {
    wrapped
        .then(|| member(data, "confidence"))
        .flatten()
        .filter(|value| value.is_number())
        .cloned()
        .unwrap_or_else(|| Value::from(0.5))
}

/// v1 `require_confidence`: a default value does not satisfy it.
fn require_confidence(
    module: &Module,
    meta: Option<&Value>,
    data: &Map<String, Value>,
    found: &mut Vec<ShapeViolation>,
) {
    if !module.manifest.constraints.require_confidence {
        return;
    }
    let given = meta
        .and_then(|meta| meta.get("confidence"))
        .or_else(|| data.get("confidence"));
    if !given.is_some_and(Value::is_number) {
        let message = "`confidence` is missing, and the module's constraints require it";
        found.push(ShapeViolation::new("/data", "required", message));
    }
}

fn check_parts(
    module: &Module,
    meta: &mut Map<String, Value>,
    data: &mut Map<String, Value>,
    found: &mut Vec<ShapeViolation>,
) -> Result<(), Box<ErrorBody>> {
    let contract = module.answer_contract();
    let has_rationale = check_rationale(data, found);
    check_overflow(module, data, found);
    let before = found.len();
    check_map(contract, Section::Data, data, found)?;
    let mut from_schema = found.split_off(before);
    // The schema would report the same problem again with a less specific code.
    from_schema.retain(|violation| {
        let about_rationale = violation.pointer == "/data/rationale"
            || (violation.pointer == "/data" && violation.message == "`rationale` is missing");
        !about_rationale || has_rationale
    });
    add_unlisted(found, from_schema);
    check_confidence_fields(meta, found);
    let before = found.len();
    check_map(contract, Section::Meta, meta, found)?;
    let from_schema = found.split_off(before);
    let refused_by_schema = !from_schema.is_empty();
    add_unlisted(found, from_schema);
    if member(meta, "risk").is_some_and(Value::is_object) && !refused_by_schema {
        check_custom_risk(module, meta, found);
    }
    Ok(())
}

/// Adds the schema violations that are not yet listed: a value of the wrong type also violates the rules for
/// the right type, and a schema often repeats the rules of every envelope.
fn add_unlisted(found: &mut Vec<ShapeViolation>, mut from_schema: Vec<ShapeViolation>) {
    from_schema.retain(|new| {
        let is_same = |old: &ShapeViolation| match &*old.keyword {
            "type" => true,
            "required" => old.message == new.message,
            keyword => keyword == new.keyword,
        };
        !found.iter().any(|old| old.pointer == new.pointer && is_same(old))
    });
    found.append(&mut from_schema);
}

fn check_rationale(data: &Map<String, Value>, found: &mut Vec<ShapeViolation>) -> bool {
    let (pointer, message) = match member(data, "rationale") {
        Some(Value::String(rationale)) if !rationale.trim().is_empty() => return true,
        Some(Value::String(_)) => ("/data/rationale", String::from("is empty")),
        Some(other) => (
            "/data/rationale",
            format!("must be a string, not {}", kind(other)),
        ),
        None => ("/data", String::from("`rationale` is missing")),
    };
    let mut violation = ShapeViolation::new(pointer, "required", message);
    violation.code = Code::E3003;
    found.push(violation);
    false
}

/// A custom risk requires a schema that declares it and a strategy that allows it.
fn check_custom_risk(module: &Module, meta: &Map<String, Value>, found: &mut Vec<ShapeViolation>) {
    let schema = module.contract.schema(Section::Meta);
    let declares_risk = schema
        .and_then(|schema| schema.get("properties"))
        .is_some_and(|properties| properties.get("risk").is_some());
    let offered = declares_risk && module.manifest.enums.strategy == EnumStrategy::Extensible;
    let text = |key: &str| {
        meta.get("risk")
            .and_then(|risk| risk.get(key))
            .and_then(Value::as_str)
    };
    if !offered || text("custom").is_none() || text("reason").is_none() {
        let message = "must be one of none, low, medium, high";
        found.push(ShapeViolation::new("/meta/risk", "enum", message));
    }
}

/// Validates a map without copying it, although the validator requires a value.
fn check_map(
    contract: &Contract,
    section: Section,
    map: &mut Map<String, Value>,
    found: &mut Vec<ShapeViolation>,
) -> Result<(), Box<ErrorBody>> {
    let value = Value::Object(std::mem::take(map));
    let checked = check_section(contract, section, &value, found);
    if let Value::Object(back) = value {
        *map = back;
    }
    checked
}

/// Checks the module's rules across meta and data.
fn check_rules(
    module: &Module,
    meta: &mut Map<String, Value>,
    data: &mut Map<String, Value>,
) -> Result<(), Box<ErrorBody>> {
    let contract = module.answer_contract();
    if contract.pointer(Section::Envelope).is_none() {
        return Ok(());
    }
    let mut whole = Map::new();
    whole.insert(String::from("ok"), Value::Bool(true));
    whole.insert(String::from("meta"), Value::Object(std::mem::take(meta)));
    whole.insert(String::from("data"), Value::Object(std::mem::take(data)));
    let mut found = Vec::new();
    let checked = check_map(contract, Section::Envelope, &mut whole, &mut found);
    for (key, part) in whole {
        match (key.as_str(), part) {
            ("meta", Value::Object(back)) => *meta = back,
            ("data", Value::Object(back)) => *data = back,
            _ => {}
        }
    }
    checked?;
    if found.is_empty() {
        return Ok(());
    }
    let error = error_of(Code::E3006, found.first(), &found, "the envelope");
    Err(Box::new(error.detail("reason", "envelope_rule")))
}
