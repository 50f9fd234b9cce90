//! `prompt.md` of a new module.

use super::Blueprint;
use crate::manifest::{Manifest, Modality};
use crate::migrate::envelope_section;

pub(super) fn write(blueprint: &Blueprint) -> String {
    let mut manifest = Manifest::read(&serde_json::Map::new());
    manifest.overflow = blueprint.tier.overflow();
    let envelope = envelope_section(&manifest, blueprint.format(), None);
    let media = blueprint.media();
    let material = if media.is_empty() {
        String::from("The text:\n\n${text}\n")
    } else {
        let kinds: Vec<&str> = media.iter().map(|kind| noun(*kind)).collect();
        format!(
            "The {}:\n\n$MEDIA_INPUTS\n\nWhat the caller wants to know: ${{text}}\n",
            kinds.join(" and the ")
        )
    };
    let (output, result) = match blueprint.output.is_empty() {
        true => (
            String::new(),
            "Put the result into `answer` and the way you came to it into `rationale`.",
        ),
        false => (
            output(blueprint),
            "Put the way you came to the result into `rationale`.",
        ),
    };
    format!(
        "# {title}\n\
         \n\
         Your task: {responsibility}.\n\
         \n\
         ## Input\n\
         \n\
         {material}\n\
         {output}\
         ## Rules\n\
         \n\
         1. Rely on the input alone; where it does not say, say so.\n\
         2. {result}\n\
         3. When you are not sure, lower the confidence rather than guess.\n\
         \n\
         {envelope}",
        title = match &blueprint.title {
            Some(title) => title.clone(),
            None => title(&blueprint.name),
        },
        responsibility = blueprint.responsibility.trim().trim_end_matches('.'),
    )
}

/// The fields of the answer.
fn output(blueprint: &Blueprint) -> String {
    let mut section = String::from("## Output\n\n");
    for field in blueprint.output.iter().filter(|field| field.name != "rationale") {
        section.push_str(&format!("- `{}`: {}\n", field.name, field.describe()));
    }
    section.push('\n');
    section
}

fn noun(kind: Modality) -> &'static str {
    match kind {
        Modality::Text => "text",
        Modality::Image => "images",
        Modality::Audio => "recording",
        Modality::Video => "video",
        Modality::Document => "document",
    }
}

/// `code-reviewer` as `Code reviewer`.
fn title(name: &str) -> String {
    let words = name.replace('-', " ");
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => words,
    }
}
