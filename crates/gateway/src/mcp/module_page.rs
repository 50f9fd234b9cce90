//! Markdown page about a module: responsibility, input, output and errors, all from manifest and schemas.

use std::fmt::Write as _;

use module::Module;
use module::lower::input_schema;
use module::schema::{Section, resolve};
use serde_json::Value;

pub(super) fn page(tool: &str, module: &Module) -> String {
    let manifest = &module.manifest;
    let mut text = format!(
        "# {}\n\n{}\n\nVersion {}, tier {}, called as the tool `{tool}`.\n",
        manifest.name,
        manifest.responsibility.trim(),
        manifest.version,
        manifest.tier.as_str()
    );
    section(
        &mut text,
        "Out of scope",
        manifest.excludes.iter().map(String::as_str),
    );
    let input = Value::Object(input_schema(module));
    section(&mut text, "Input", fields(&input, &input));
    if let Some(data) = module.contract.schema(Section::Data) {
        section(
            &mut text,
            "Response data",
            fields(module.contract.document(), data),
        );
    }
    let own = manifest.error_codes.iter();
    let own = own.map(|(code, meaning)| format!("`{code}` {meaning}"));
    section(&mut text, "Module errors", own);
    text
}

fn section(text: &mut String, title: &str, lines: impl IntoIterator<Item = impl AsRef<str>>) {
    let mut lines = lines.into_iter().peekable();
    if lines.peek().is_none() {
        return;
    }
    // Writing to a string cannot fail.
    write!(text, "\n## {title}\n\n").ok();
    for line in lines {
        writeln!(text, "- {}", line.as_ref()).ok();
    }
}

/// The properties of an object, one line each.
fn fields(document: &Value, schema: &Value) -> Vec<String> {
    let schema = resolve(document, schema);
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|list| list.iter().any(|one| one == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let line = |(name, property): (&String, &Value)| {
        let property = resolve(document, property);
        let mut line = format!("`{name}`");
        if let Some(kind) = property.get("type").and_then(Value::as_str) {
            line.push_str(&format!(" ({kind})"));
        }
        if is_required(name) {
            line.push_str(", required");
        }
        if let Some(about) = property.get("description").and_then(Value::as_str) {
            line.push_str(&format!(": {}", about.trim()));
        }
        line
    };
    properties.into_iter().flatten().map(line).collect()
}
