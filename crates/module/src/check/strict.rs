//! The two strict lists: requirements of v2.2 and v2.5 that a runtime does not depend on.

use jsonschema::Draft;
use serde_json::Value;

use super::Strict;
use super::media::has_place_for_media;
use crate::diagnostic::{Diagnostic, Location, Rule, Severity};
use crate::document::EntryPart;
use crate::format::Format;
use crate::limits;
use crate::load::LoadContext;
use crate::manifest::Modality;
use crate::module::Module;
use crate::schema::{CompiledSchema, Section, resolve};

/// A shorter prompt is unlikely to state everything required.
const PROMPT_CHARS_MIN: usize = 100;

pub(super) fn check(reading: &mut LoadContext<'_>, strict: Strict) {
    let mut found = Vec::new();
    if let Some(module) = &reading.module {
        let list = StrictList { reading, module };
        if strict == Strict::Standard {
            list.missing_tier(&mut found);
        } else {
            list.format(strict, &mut found);
            list.keys(&mut found);
            list.meta(&mut found);
            list.data(&mut found);
            list.prompt(&mut found);
            if strict == Strict::V25 {
                list.media(&mut found);
            }
        }
    }
    reading.report.extend(found);
}

struct StrictList<'a> {
    reading: &'a LoadContext<'a>,
    module: &'a Module,
}

impl StrictList<'_> {
    fn manifest(&self, rule: Rule, message: &str, hint: &str) -> Diagnostic {
        Diagnostic::new(rule, message)
            .at(self.reading.in_manifest("", EntryPart::Value))
            .hint(hint)
    }

    fn has(&self, key: &str) -> bool {
        self.module.source.get(key).is_some_and(|value| !value.is_null())
    }

    /// A module with overflow or media but without a tier can run; the default tier is reported.
    fn missing_tier(&self, found: &mut Vec<Diagnostic>) {
        if self.module.format >= Format::V2_2 && !self.has("tier") {
            let hint = "add `tier: exec`, `tier: decision` or `tier: exploration`";
            let diagnostic = self.manifest(
                Rule::STRICT_TIER,
                "the module has no tier; `decision` is assumed",
                hint,
            );
            found.push(diagnostic.severity(Severity::Warning));
        }
    }

    fn format(&self, strict: Strict, found: &mut Vec<Diagnostic>) {
        let format = self.module.format;
        if format < Format::V2_0 {
            let wanted = if strict == Strict::V25 { "v2.5" } else { "v2.2" };
            let message = format!("the module is written in {format}, not in {wanted}");
            let hint = format!(
                "`cogn migrate --to {}` converts it",
                wanted.trim_start_matches('v')
            );
            found.push(self.manifest(Rule::STRICT_FORMAT, &message, &hint));
        }
    }

    fn keys(&self, found: &mut Vec<Diagnostic>) {
        let wanted = [
            (
                "tier",
                Rule::STRICT_TIER,
                "add `tier: exec`, `tier: decision` or `tier: exploration`",
            ),
            (
                "overflow",
                Rule::STRICT_OVERFLOW,
                "add `overflow: {enabled: true, max_items: 5}`, or `enabled: false`",
            ),
            (
                "enums",
                Rule::STRICT_ENUMS,
                "add `enums: {strategy: extensible}` or `strict`",
            ),
            (
                "excludes",
                Rule::STRICT_EXCLUDES,
                "list what the module must not do",
            ),
        ];
        for (key, rule, hint) in wanted {
            if !self.has(key) {
                found.push(self.manifest(rule, &format!("`{key}` is missing"), hint));
            }
        }
        if self
            .module
            .source
            .get("excludes")
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
        {
            let place = self.reading.in_manifest("/excludes", EntryPart::Key);
            let diagnostic = Diagnostic::new(Rule::EMPTY_EXCLUDES, "`excludes` is empty").at(place);
            found.push(diagnostic.hint("list what the module must not do"));
        }
        if self.module.tests.is_empty() {
            let hint = "add tests/case1.input.json and tests/case1.expected.json";
            found.push(self.manifest(Rule::NO_TESTS, "the module has no golden tests", hint));
        }
    }

    /// The schema of a section with references resolved, and its pointer.
    fn section(&self, section: Section) -> Option<(&Value, &str)> {
        let contract = &self.module.contract;
        let schema = contract.schema(section)?;
        Some((resolve(contract.document(), schema), contract.pointer(section)?))
    }

    fn at(&self, pointer: &str, part: EntryPart) -> Location {
        self.reading.in_contract(pointer, part)
    }

    fn meta(&self, found: &mut Vec<Diagnostic>) {
        let shape = "`meta` requires `confidence`, `risk` and `explain`";
        let Some((meta, pointer)) = self.section(Section::Meta) else {
            let diagnostic = Diagnostic::new(Rule::STRICT_META_SCHEMA, "schema.json has no `meta` section");
            found.push(diagnostic.at(Location::file("schema.json")).hint(shape));
            return;
        };
        for key in ["confidence", "risk", "explain"] {
            if !self.requires(meta, key) {
                let message = format!("the meta schema does not require `{key}`");
                let place = self.at(pointer, EntryPart::Key);
                found.push(
                    Diagnostic::new(Rule::STRICT_META_SCHEMA, message)
                        .at(place)
                        .hint(shape),
                );
            }
        }
        let explain = self.property(meta, "explain");
        let limit = explain
            .and_then(|schema| schema.get("maxLength"))
            .and_then(Value::as_u64);
        if limit.is_none_or(|limit| limit > limits::EXPLAIN_CHARS_MAX as u64) {
            let place = self.at(&format!("{pointer}/properties/explain"), EntryPart::Key);
            let message = "the meta schema does not limit `explain` to 280 characters";
            let diagnostic = Diagnostic::new(Rule::STRICT_EXPLAIN_LIMIT, message).at(place);
            found.push(diagnostic.hint("add `\"maxLength\": 280`"));
        }
    }

    fn data(&self, found: &mut Vec<Diagnostic>) {
        let document = self.module.contract.document();
        if let Some((data, pointer)) = self.section(Section::Data) {
            if !self.requires(data, "rationale") {
                let place = self.at(pointer, EntryPart::Key);
                let diagnostic = Diagnostic::new(
                    Rule::STRICT_RATIONALE,
                    "the data schema does not require `rationale`",
                );
                found.push(
                    diagnostic
                        .at(place)
                        .hint("every answer must have a rationale: require `rationale`, a string"),
                );
            }
            let extensions = self.property(data, "extensions").is_some()
                || document.pointer("/$defs/extensions").is_some();
            if self.module.manifest.overflow.enabled && !extensions {
                let place = self.at(pointer, EntryPart::Key);
                let diagnostic = Diagnostic::new(
                    Rule::STRICT_EXTENSIONS,
                    "overflow is enabled, but `data` has no `extensions`",
                );
                found.push(
                    diagnostic
                        .at(place)
                        .hint("add `extensions: {insights: [...]}`, or disable overflow"),
                );
            }
        }
        if self.section(Section::Error).is_none()
            && document.is_object()
            && self.module.format >= Format::V2_0
        {
            let diagnostic = Diagnostic::new(Rule::MISSING_SECTION, "schema.json has no `error` section");
            let diagnostic = diagnostic.at(Location::file("schema.json"));
            found.push(diagnostic.hint("it requires `code` and `message`"));
        }
    }

    /// Whether a schema requires a field, directly or through `allOf`.
    fn requires(&self, schema: &Value, key: &str) -> bool {
        let document = self.module.contract.document();
        let listed = |schema: &Value| {
            let required = schema.get("required").and_then(Value::as_array);
            required.is_some_and(|list| list.iter().any(|name| name == key))
        };
        let parts = schema.get("allOf").and_then(Value::as_array);
        listed(schema)
            || parts
                .into_iter()
                .flatten()
                .any(|part| listed(resolve(document, part)))
    }

    fn property<'s>(&'s self, schema: &'s Value, key: &str) -> Option<&'s Value> {
        let document = self.module.contract.document();
        let own = |schema: &'s Value| schema.get("properties")?.get(key);
        let parts = schema.get("allOf").and_then(Value::as_array);
        let found = own(schema).or_else(|| {
            parts
                .into_iter()
                .flatten()
                .find_map(|part| own(resolve(document, part)))
        })?;
        Some(resolve(document, found))
    }

    fn prompt(&self, found: &mut Vec<Diagnostic>) {
        let prompt = self.module.prompt.to_lowercase();
        if prompt.trim().is_empty() {
            return;
        }
        let place = self.reading.in_prompt(0..0);
        let explains = prompt.contains("envelope")
            || prompt.contains("信封")
            || (prompt.contains("meta") && prompt.contains("confidence"));
        if !explains {
            let diagnostic = Diagnostic::new(Rule::STRICT_PROMPT, "the prompt does not explain the envelope");
            found.push(
                diagnostic
                    .at(place.clone())
                    .hint("describe the contents of `meta` and `data`"),
            );
        }
        if prompt.chars().count() < PROMPT_CHARS_MIN {
            let message = format!("the prompt has fewer than {PROMPT_CHARS_MIN} characters");
            found.push(Diagnostic::new(Rule::SHORT_PROMPT, message).at(place));
        }
    }

    fn media(&self, found: &mut Vec<Diagnostic>) {
        let wanted = [
            (
                "response",
                Rule::STRICT_RESPONSE,
                "add `response: {mode: sync}`, `streaming` or `both`",
            ),
            (
                "modalities",
                Rule::STRICT_MODALITIES,
                "add `modalities: {input: [text], output: [text]}`",
            ),
        ];
        for (key, rule, hint) in wanted {
            if !self.has(key) {
                found.push(self.manifest(rule, &format!("`{key}` is missing"), hint));
            }
        }
        let modalities = &self.module.manifest.modalities;
        let media = |list: &[Modality]| list.iter().any(|kind| *kind != Modality::Text);
        for (list, section, rule, key) in [
            (
                &modalities.input,
                Section::Input,
                Rule::STRICT_MEDIA_SCHEMA,
                "input",
            ),
            (
                &modalities.output,
                Section::Data,
                Rule::STRICT_MEDIA_OUTPUT,
                "output",
            ),
        ] {
            if media(list) && self.section(section).is_some() && !has_place_for_media(self.module, section) {
                let message = format!(
                    "media {key} is declared, but the `{}` schema has no field for it",
                    section.as_str()
                );
                let place = self
                    .reading
                    .in_manifest(&format!("/modalities/{key}"), EntryPart::Key);
                let hint = "add a field with `type` (url, base64, file) and `media_type`";
                found.push(Diagnostic::new(rule, message).at(place).hint(hint));
            }
        }
        if media(&modalities.input) && !self.module.prompt.contains("$MEDIA_INPUTS") {
            let message = "media is declared, but the prompt has no $MEDIA_INPUTS";
            let diagnostic =
                Diagnostic::new(Rule::STRICT_MEDIA_PROMPT, message).at(self.reading.in_prompt(0..0));
            found.push(diagnostic.hint("put $MEDIA_INPUTS at the position of the media"));
        }
        self.error_pattern(found);
    }

    fn error_pattern(&self, found: &mut Vec<Diagnostic>) {
        let Some((error, pointer)) = self.section(Section::Error) else {
            return;
        };
        let Some(code) = self.property(error, "code") else {
            return;
        };
        let Ok(validator) = CompiledSchema::new(code.clone(), Draft::Draft7) else {
            return;
        };
        if !validator.is_valid(&Value::from("E1001")) || !validator.is_valid(&Value::from("E4010")) {
            let place = self.at(&format!("{pointer}/properties/code"), EntryPart::Key);
            let diagnostic = Diagnostic::new(
                Rule::STRICT_ERROR_PATTERN,
                "the error schema refuses the codes of v2.5",
            );
            found.push(
                diagnostic
                    .at(place)
                    .hint("`\"pattern\": \"^E[1-9][0-9]{3}$\"` accepts all of them"),
            );
        }
    }
}
