//! Links between pages resolve to a file of the repository and, if they have a fragment, to a heading in it.
//! External URLs are not fetched.

use crate::git_files;
use crate::shell::root;

/// Pages that are copied unchanged from other sources.
const FOREIGN: &[&str] = &["/fixtures/"];

#[test]
fn links_resolve() {
    let mut broken = Vec::new();
    for page in git_files::ending(".md") {
        if FOREIGN.iter().any(|part| page.contains(part)) {
            continue;
        }
        let text = git_files::read(&page);
        for target in links(&text) {
            if !leads_somewhere(&page, &text, &target) {
                broken.push(format!("{page}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

fn leads_somewhere(page: &str, text: &str, target: &str) -> bool {
    if target.contains("://") || target.starts_with("mailto:") {
        return true;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    if path.is_empty() {
        return anchors(text).any(|heading| heading == anchor);
    }
    let Some(path) = resolve(page, path) else {
        return false;
    };
    let found = root().join(&path);
    if anchor.is_empty() || !found.is_file() {
        return found.try_exists().unwrap_or(false) && anchor.is_empty();
    }
    anchors(&git_files::read(&path)).any(|heading| heading == anchor)
}

/// Resolves a path relative to a page to one relative to the root. None if it leaves the repository.
fn resolve(page: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Targets of inline links and images, outside code.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in prose(text) {
        for (index, piece) in line.split("](").enumerate() {
            if index == 0 {
                continue;
            }
            let target = piece.split(')').next().unwrap_or_default();
            links.push(String::from(target.split(' ').next().unwrap_or_default()));
        }
    }
    links
}

/// Lines outside fences, without code spans.
fn prose(text: &str) -> impl Iterator<Item = String> {
    let mut fenced = false;
    text.lines().filter_map(move |line| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        let outside = line.split('`').step_by(2).collect::<Vec<_>>();
        (!fenced).then(|| outside.join("`"))
    })
}

/// The anchors that renderers generate for headings.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let mut fenced = false;
    text.lines().filter_map(move |line| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let heading = line.trim_start_matches('#');
        let is_heading = !fenced && heading.len() < line.len() && heading.starts_with(' ');
        is_heading.then(|| anchor(heading.trim()))
    })
}

fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            letter if letter.is_alphanumeric() => Some(letter),
            _ => None,
        })
        .collect()
}

#[test]
fn links_are_found_outside_code() {
    let text = "See [one](a.md#b) and `[not](x)`.\n```\n[nor](y)\n```\n![pic](p.png \"title\")\n## The `--json` way\n";
    assert_eq!(links(text), ["a.md#b", "p.png"]);
    assert_eq!(anchors(text).collect::<Vec<_>>(), ["the---json-way"]);
    assert_eq!(
        resolve("docs/guide/a.md", "../../README.md").as_deref(),
        Some("README.md")
    );
    assert_eq!(resolve("README.md", "../x"), None);
}
