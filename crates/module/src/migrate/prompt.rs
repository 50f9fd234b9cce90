//! Migration of the prompt: adds the section that explains the envelope to the model.

use super::MigrateError;
use super::draft::{Draft, PROMPT};
use super::edit::path;
use super::section_location::{data_site, value};
use super::text::Text;
use crate::file_map::Entry;
use crate::format::Format;
use crate::manifest::{Manifest, RiskRule};

pub(super) fn migrate(draft: &mut Draft) -> Result<(), MigrateError> {
    let Some(whole) = draft.files.text(PROMPT) else {
        return Ok(());
    };
    // An empty prompt stays empty, so that the module is not taken for complete.
    if whole.trim().is_empty() || explains_envelope(whole, draft.is_before_v22()) {
        return Ok(());
    }
    let original = Text::split(whole);
    let manifest = Manifest::read(draft.manifest.map());
    let source = match manifest.risk_rule {
        RiskRule::MaxChangesRisk => describes(draft, "changes")?.then_some("change you propose"),
        RiskRule::MaxIssuesRisk => describes(draft, "issues")?.then_some("issue you name"),
        RiskRule::Explicit => None,
    };
    let section = envelope_section(&manifest, draft.to, source);
    let gap = if original.body.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    let body = format!("{}{gap}{section}", original.body);
    let joined = original.join(&body);
    draft.files.insert(PROMPT, Entry::Read(joined.into_bytes()));
    draft.change(PROMPT, "explains the envelope");
    Ok(())
}

/// Whether the data schema has this field.
fn describes(draft: &mut Draft, field: &str) -> Result<bool, MigrateError> {
    let Some(mut site) = data_site(draft)? else {
        return Ok(false);
    };
    site.at.extend(path(&["properties", field]));
    Ok(value(draft, &site)?.is_some())
}

/// Whether the prompt explains the envelope. In an older module the word alone does not count: the envelope
/// of v2.1 has no `meta`.
fn explains_envelope(prompt: &str, is_older: bool) -> bool {
    let prompt = prompt.to_lowercase();
    let names = |names: &[&str]| names.iter().all(|name| prompt.contains(name));
    if is_older {
        return names(&["meta", "confidence", "risk", "explain"]);
    }
    names(&["envelope"]) || names(&["信封"]) || names(&["meta", "confidence"])
}

/// The prompt section about the form of the answer. If the risk is derived from parts of the answer,
/// `source` names them.
pub(crate) fn envelope_section(manifest: &Manifest, format: Format, source: Option<&str>) -> String {
    let risk = source.map_or_else(
        || String::from("how much harm a wrong answer could do"),
        |source| format!("the highest risk of any {source}"),
    );
    let insights = if manifest.overflow.enabled && manifest.overflow.max_items > 0 {
        format!(
            "- `extensions.insights`: what matters but has no field, at most {} items, each with `text` and `suggested_mapping`\n",
            manifest.overflow.max_items
        )
    } else {
        String::new()
    };
    let code = if format < Format::V2_5 {
        "a short code"
    } else {
        "a code such as `E2004`"
    };
    format!(
        "## Response format (envelope v2.2)\n\
         \n\
         Answer with one JSON object and nothing else. Every field described above stands under `data`.\n\
         \n\
         On success: `{{\"ok\": true, \"meta\": {{...}}, \"data\": {{...}}}}`\n\
         \n\
         `meta` is for routing:\n\
         \n\
         - `confidence`: a number from 0 to 1\n\
         - `risk`: \"none\", \"low\", \"medium\" or \"high\": {risk}\n\
         - `explain`: a summary of at most 280 characters\n\
         \n\
         `data` is the result:\n\
         \n\
         - the fields of the result\n\
         - `rationale`: the whole reasoning, for audit\n\
         {insights}\
         \n\
         On failure: `{{\"ok\": false, \"meta\": {{...}}, \"error\": {{\"code\": \"...\", \"message\": \"...\"}}}}`, with {code}.\n"
    )
}
