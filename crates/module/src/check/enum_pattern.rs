//! Extensible enums: a `oneOf` of listed strings and of an object with a custom value and its reason. A
//! schema that attempts this pattern incorrectly would refuse every extension, or all values.

use serde_json::{Map, Value};

use crate::diagnostic::{Diagnostic, Rule, Severity};
use crate::document::{EntryPart, join};
use crate::load::LoadContext;
use crate::manifest::EnumStrategy;
use crate::schema::{Section, Visit, resolve, walk};

/// Longest custom value, in characters.
const CUSTOM_CHARS_MAX: u64 = 32;

pub(super) fn check(reading: &mut LoadContext<'_>) {
    let mut found = Vec::new();
    if let Some(module) = &reading.module {
        let contract = &module.contract;
        let tag = module.manifest.enums.unknown_tag.as_str();
        let strict = module.manifest.enums.strategy == EnumStrategy::Strict;
        let mut roots: Vec<String> = Vec::new();
        roots.extend(
            [Section::Data, Section::Meta]
                .into_iter()
                .filter_map(|section| contract.pointer(section).map(String::from)),
        );
        roots.extend(["/$defs", "/definitions"].into_iter().flat_map(|group| {
            let names = contract.document().pointer(group).and_then(Value::as_object);
            names
                .into_iter()
                .flat_map(Map::keys)
                .map(move |name| join(group, name))
        }));
        for root in roots {
            let Some(schema) = contract.document().pointer(&root) else {
                continue;
            };
            walk(schema, &root, &mut |pointer, schema| {
                for keyword in ["oneOf", "anyOf"] {
                    if let Some(forms) = schema.get(keyword).and_then(Value::as_array) {
                        let at = join(pointer, keyword);
                        let pattern = Pattern {
                            reading,
                            document: contract.document(),
                            tag,
                            at: &at,
                        };
                        pattern.check_forms(keyword, forms, strict, &mut found);
                    }
                }
                Visit::Descend
            });
        }
    }
    reading.report.extend(found);
}

struct Pattern<'a> {
    reading: &'a LoadContext<'a>,
    document: &'a Value,
    tag: &'a str,
    at: &'a str,
}

impl Pattern<'_> {
    fn check_forms(&self, keyword: &str, forms: &[Value], strict: bool, found: &mut Vec<Diagnostic>) {
        let resolved: Vec<&Value> = forms.iter().map(|form| resolve(self.document, form)).collect();
        let has = |form: &Value, key: &str| form.pointer(&join("/properties", key)).is_some();
        let Some(own) = resolved
            .iter()
            .position(|form| has(form, self.tag) || has(form, "custom"))
        else {
            return;
        };
        // Other unions of objects may have a field called `custom`; a neighbouring enum distinguishes the
        // pattern.
        let Some(listed) = resolved
            .iter()
            .position(|form| form.get("enum").is_some() || form.get("const").is_some())
        else {
            if resolved
                .iter()
                .any(|form| form.get("type") == Some(&Value::from("string")))
            {
                self.complain(
                    "",
                    "the listed values of the extensible enum have no `enum`",
                    found,
                );
            }
            return;
        };
        if keyword == "anyOf" {
            self.complain("", "an extensible enum is written with `oneOf`", found);
        }
        self.listed(resolved[listed], &listed.to_string(), found);
        self.own(resolved[own], &own.to_string(), found);
        if strict {
            let message = "the schema allows extending the enum, but the module's enums are strict";
            let diagnostic = Diagnostic::new(Rule::ENUM_PATTERN, message).severity(Severity::Warning);
            let place = self.reading.in_contract(self.at, EntryPart::Key);
            found.push(
                diagnostic
                    .at(place)
                    .hint("custom values will be refused with E3005"),
            );
        }
    }

    /// `{type: string, enum: [...]}`
    fn listed(&self, form: &Value, index: &str, found: &mut Vec<Diagnostic>) {
        let good = form
            .get("enum")
            .and_then(Value::as_array)
            .is_none_or(|values| !values.is_empty() && values.iter().all(Value::is_string));
        if !good {
            self.complain(
                &join("", index),
                "the listed values of an extensible enum must be strings",
                found,
            );
        }
    }

    /// `{type: object, required: [custom, reason], properties: {...}}`
    fn own(&self, form: &Value, index: &str, found: &mut Vec<Diagnostic>) {
        let place = join("", index);
        if form.get("type") != Some(&Value::from("object")) {
            self.complain(&place, "the extension of an enum must have `type: object`", found);
        }
        let required = form.get("required").and_then(Value::as_array);
        for key in [self.tag, "reason"] {
            if !required.is_some_and(|list| list.iter().any(|name| name == key)) {
                self.complain(
                    &place,
                    &format!("the extension of an enum must require `{key}`"),
                    found,
                );
            }
            let kind = form
                .pointer(&join("/properties", key))
                .map(|schema| resolve(self.document, schema));
            if kind.is_none_or(|schema| schema.get("type") != Some(&Value::from("string"))) {
                let message = format!("`{key}` in the extension of an enum must be a string");
                self.complain(&place, &message, found);
            }
        }
        let limit = form.pointer(&format!("{}/maxLength", join("/properties", self.tag)));
        if limit
            .and_then(Value::as_u64)
            .is_some_and(|limit| limit > CUSTOM_CHARS_MAX)
        {
            let message = format!("`{}` may have at most {CUSTOM_CHARS_MAX} characters", self.tag);
            self.complain(
                &format!("{place}/properties/{}/maxLength", self.tag),
                &message,
                found,
            );
        }
    }

    fn complain(&self, below: &str, message: &str, found: &mut Vec<Diagnostic>) {
        let place = self
            .reading
            .in_contract(&format!("{}{below}", self.at), EntryPart::Key);
        let hint = "the form is `oneOf: [{type: string, enum: [...]}, {type: object, required: [custom, reason], ...}]`";
        found.push(Diagnostic::new(Rule::ENUM_PATTERN, message).at(place).hint(hint));
    }
}
