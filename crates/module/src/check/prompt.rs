//! Prompt rules: placeholders are known, calls are valid, assets exist.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;

use crate::compose::{Call, calls};
use crate::diagnostic::{Diagnostic, Rule, nearest};
use crate::document::{EntryPart, join};
use crate::file_map;
use crate::input::input_view;
use crate::load::LoadContext;
use crate::manifest::Modality;
use crate::module::Module;
use crate::schema::{SchemaView, Section, resolve};

const PLACEHOLDERS: &[&str] = &["ARGUMENTS", "INPUT", "SCHEMA", "MEDIA_INPUTS"];

pub(super) fn check(reading: &mut LoadContext<'_>) {
    let mut found = Vec::new();
    if let Some(module) = &reading.module {
        if module.prompt.trim().is_empty() {
            let file = reading.prompt.map_or("prompt.md", |(file, _)| file);
            // A missing or unreadable prompt has already been reported.
            if reading.files.text(file).is_some_and(|text| !text.contains('\0')) {
                let diagnostic = Diagnostic::new(Rule::EMPTY_PROMPT, "the prompt is empty");
                found.push(
                    diagnostic
                        .at(reading.in_prompt(0..0))
                        .hint("describe the task of the model"),
                );
            }
        } else {
            placeholders(reading, module, &mut found);
            let made = call_syntax(reading, module, &mut found);
            injections(reading, module, &made, &mut found);
            assets(reading, module, &mut found);
            unused_fields(reading, module, &mut found);
            answer_fields(reading, module, &mut found);
        }
    }
    reading.report.extend(found);
}

/// `$WORD`, `${field}` and `$MEDIA_INPUTS`.
fn placeholders(reading: &LoadContext<'_>, module: &Module, found: &mut Vec<Diagnostic>) {
    let prompt = &module.prompt;
    let fields = input_fields(module);
    let mut media: Option<Range<usize>> = None;
    for (at, _) in prompt.match_indices('$') {
        let rest = prompt.get(at + 1..).unwrap_or_default();
        if let Some(braced) = rest.strip_prefix('{') {
            field(reading, fields.as_deref(), at, braced, found);
            continue;
        }
        let length = rest
            .find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
            .unwrap_or(rest.len());
        let word = rest.get(..length).unwrap_or_default();
        let range = at..at + 1 + length;
        let follows_lower = rest
            .get(length..)
            .is_some_and(|tail| tail.starts_with(|c: char| c.is_ascii_lowercase()));
        if word == "MEDIA_INPUTS" {
            media.get_or_insert(range);
        } else if word.len() >= 3
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && !follows_lower
            && !PLACEHOLDERS.contains(&word)
        {
            found.extend(unknown(reading, prompt, word, range));
        }
    }
    let takes_media = module
        .manifest
        .modalities
        .input
        .iter()
        .any(|kind| *kind != Modality::Text);
    if let Some(range) = media
        && !takes_media
    {
        let message = "the prompt has $MEDIA_INPUTS, but the module accepts no media";
        let diagnostic = Diagnostic::new(Rule::MEDIA_PLACEHOLDER, message).at(reading.in_prompt(range));
        found.push(diagnostic.hint("add `modalities: {input: [text, image]}` to the manifest"));
    }
}

/// A word in capitals that is not a placeholder. In a code block it is probably intended as text.
fn unknown(reading: &LoadContext<'_>, prompt: &str, word: &str, range: Range<usize>) -> Option<Diagnostic> {
    let near = nearest(word, PLACEHOLDERS.iter().copied());
    let fences = prompt
        .get(..range.start)
        .unwrap_or_default()
        .matches("```")
        .count();
    if near.is_none() && fences % 2 == 1 {
        return None;
    }
    let hint = match near {
        Some(near) => format!("did you mean `${near}`?"),
        None => String::from(
            "known placeholders: $INPUT, $ARGUMENTS, $ARGUMENTS[N], $N, $SCHEMA, $MEDIA_INPUTS and ${field}",
        ),
    };
    let message = format!("unknown placeholder `${word}`");
    Some(
        Diagnostic::new(Rule::UNKNOWN_PLACEHOLDER, message)
            .at(reading.in_prompt(range))
            .hint(hint),
    )
}

/// `${field}`, which must be a field of the input.
fn field(
    reading: &LoadContext<'_>,
    fields: Option<&[String]>,
    at: usize,
    braced: &str,
    found: &mut Vec<Diagnostic>,
) {
    let Some(name) = braced.split('}').next().filter(|name| name.len() < braced.len()) else {
        return;
    };
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let Some(fields) = fields else { return };
    if name.is_empty() || !name.chars().all(plain) {
        return;
    }
    let first = name.split('.').next().unwrap_or(name);
    if fields.iter().any(|field| field == first) {
        return;
    }
    let hint = match nearest(first, fields.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `${{{near}}}`?"),
        None => format!("the input has {}", fields.join(", ")),
    };
    let message = format!("`${{{name}}}` is not a field of the input");
    let place = reading.in_prompt(at..at + name.len() + 3);
    found.push(
        Diagnostic::new(Rule::UNKNOWN_PLACEHOLDER, message)
            .at(place)
            .hint(hint),
    );
}

/// The names of the input's fields, if the schema lists any.
fn input_fields(module: &Module) -> Option<Vec<String>> {
    let document = module.contract.document();
    let schema = resolve(document, module.contract.schema(Section::Input)?);
    let properties = schema.get("properties").and_then(Value::as_object)?;
    Some(properties.keys().cloned().collect())
}

/// Fields of the input that no placeholder, argument, mapping or condition uses.
fn unused_fields(reading: &LoadContext<'_>, module: &Module, found: &mut Vec<Diagnostic>) {
    let required = input_view(module).map_or_else(Vec::new, |view| view.required());
    let section = module.contract.pointer(Section::Input).unwrap_or_default();
    for name in module.field_use().never_used(module) {
        let (rule, consequence) = match required.contains(&name) {
            true => (Rule::UNUSED_REQUIRED_FIELD, "every run is refused"),
            false => (Rule::UNUSED_FIELD, "its value is ignored"),
        };
        let place = join(&join(section, "properties"), name);
        let message = format!("the input field `{name}` reaches no request: {consequence}");
        let hint =
            format!("add `${{{name}}}` or `$INPUT` to the prompt, or remove the field from the schema");
        let diagnostic = Diagnostic::new(rule, message).at(reading.in_contract(&place, EntryPart::Key));
        found.push(diagnostic.hint(hint));
    }
}

/// Mentions of `data.field` that the data schema does not have.
fn answer_fields(reading: &LoadContext<'_>, module: &Module, found: &mut Vec<Diagnostic>) {
    let prompt = &module.prompt;
    let Some(schema) = module.contract.schema(Section::Data) else {
        return;
    };
    let root = SchemaView::new(module.contract.document(), schema);
    for (at, _) in prompt.match_indices("data.") {
        let before = prompt.get(..at).and_then(|text| text.chars().next_back());
        // Part of a word, or of the path of another module's answer.
        if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')) {
            continue;
        }
        let rest = prompt.get(at + 5..).unwrap_or_default();
        let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']' | '*');
        let end = rest.find(|c: char| !is_path(c)).unwrap_or(rest.len());
        let path = rest.get(..end).unwrap_or_default().trim_end_matches('.');
        let Some((name, known)) = missing_field(root, path) else {
            continue;
        };
        let hint = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the schema has {}", known.join(", ")),
        };
        let message = format!("the prompt mentions `data.{path}`, but the schema has no field `{name}`");
        let place = reading.in_prompt(at..at + 5 + path.len());
        found.push(
            Diagnostic::new(Rule::UNKNOWN_ANSWER_FIELD, message)
                .at(place)
                .hint(hint),
        );
    }
}

/// The first name of a path that its schema does not have, and the names that it has.
fn missing_field<'p, 's>(root: SchemaView<'s>, path: &'p str) -> Option<(&'p str, Vec<&'s str>)> {
    let mut view = root;
    for part in path.split('.') {
        let name = part.split('[').next().unwrap_or(part);
        if name.is_empty() {
            return None;
        }
        // A list may be named without brackets.
        let object = view.items().filter(|_| !view.declares(name)).unwrap_or(view);
        if !object.declares(name) {
            let known: Vec<&str> = object.properties().iter().map(|(name, _)| *name).collect();
            return (!object.is_open()).then_some((name, known));
        }
        view = object.property(name)?;
    }
    None
}

fn call_syntax<'a>(
    reading: &LoadContext<'_>,
    module: &'a Module,
    found: &mut Vec<Diagnostic>,
) -> Vec<Call<'a>> {
    let mut made = Vec::new();
    for call in calls(&module.prompt) {
        match call {
            Ok(call) => made.push(call),
            Err(problem) => {
                let diagnostic = Diagnostic::new(Rule::BAD_CALL, problem.message);
                let hint = "write `@call:name(arguments)[optional, timeout=30s]`";
                found.push(diagnostic.at(reading.in_prompt(problem.range)).hint(hint));
            }
        }
    }
    made
}

/// `{{module.meta.risk}}` refers to a module that is called or required.
fn injections(reading: &LoadContext<'_>, module: &Module, made: &[Call<'_>], found: &mut Vec<Diagnostic>) {
    let required = module
        .manifest
        .composition
        .requires
        .iter()
        .map(|required| required.name.as_str());
    let known: BTreeSet<&str> = made.iter().map(|call| call.name).chain(required).collect();
    for (at, _) in module.prompt.match_indices("{{") {
        let rest = module.prompt.get(at + 2..).unwrap_or_default();
        let Some((inner, _)) = rest.split_once("}}") else {
            continue;
        };
        let path = inner.trim();
        let mut parts = path.split('.');
        let (Some(name), Some("meta" | "data" | "ok" | "error")) = (parts.next(), parts.next()) else {
            continue;
        };
        if !known.contains(name) {
            let message =
                format!("`{{{{{path}}}}}` refers to `{name}`, which is neither called nor required");
            let diagnostic = Diagnostic::new(Rule::UNKNOWN_PLACEHOLDER, message);
            let diagnostic = diagnostic.at(reading.in_prompt(at..at + inner.len() + 4));
            let hint = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("call it first: `@call:{name}`"),
            };
            found.push(diagnostic.hint(hint));
        }
    }
}

/// Mentions of `assets/...`.
fn assets(reading: &LoadContext<'_>, module: &Module, found: &mut Vec<Diagnostic>) {
    for (at, _) in module.prompt.match_indices("assets/") {
        let before = module.prompt.get(..at).and_then(|text| text.chars().next_back());
        if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '.'))
            && before != Some('/')
        {
            continue;
        }
        let rest = module.prompt.get(at..).unwrap_or_default();
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '.')))
            .unwrap_or(rest.len());
        let mention = rest.get(..end).unwrap_or_default().trim_end_matches('.');
        let is_file = mention.rsplit('/').next().is_some_and(|name| name.contains('.'));
        if is_file && file_map::normalise(mention).is_none_or(|path| !reading.files.contains(&path)) {
            let message = format!("the prompt mentions `{mention}`, which does not exist");
            let place = reading.in_prompt(at..at + mention.len());
            found.push(Diagnostic::new(Rule::ASSET_MISSING, message).at(place));
        }
    }
}
