//! Wording: words that a reader has to decode are in no message, help text, page or comment. STYLE.md, section
//! "Words", says what to write instead.

use crate::git_files;
use crate::source;

/// Matched as whole words, in any case.
const FORBIDDEN: &[&str] = &[
    "whoever",
    "nobody",
    "somebody",
    "anybody",
    "everybody",
    "mend",
    "mends",
    "mended",
    "mending",
    "farewell",
    "goes on with",
    "go on with",
    "gone on with",
    "went on with",
    "is told",
    "are told",
    "was told",
    "lets go of",
    "let go of",
    "stands in",
    "stands beside",
    "lies beside",
    "no business",
    "is let in",
    "are let in",
    "says nothing",
    "said nothing",
    "fell silent",
    "falls silent",
    "comes to an end",
    "come to an end",
    "throws away",
    "threw away",
    "by and by",
    "takes a look",
];

/// The rule itself shows bad examples between these marks.
const EXAMPLES: (&str, &str) = ("<!-- words:examples -->", "<!-- /words:examples -->");

fn forbidden_in(text: &str) -> Vec<&'static str> {
    let words: String = text
        .chars()
        .map(|c| {
            if c.is_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                ' '
            }
        })
        .collect();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = format!(" {words} ");
    FORBIDDEN
        .iter()
        .filter(|word| words.contains(&format!(" {word} ")))
        .copied()
        .collect()
}

#[test]
fn pages_have_no_forbidden_word() {
    let mut found = Vec::new();
    for path in git_files::ending(".md") {
        // Prompts of the examples are parts of recorded requests, not pages.
        if path.starts_with("examples/") && path.ends_with("/prompt.md") {
            continue;
        }
        let mut text = git_files::read(&path);
        if let (Some(start), Some(end)) = (text.find(EXAMPLES.0), text.find(EXAMPLES.1)) {
            text.replace_range(start..end, "");
        }
        for (index, line) in text.lines().enumerate() {
            for word in forbidden_in(line) {
                found.push(format!("{path}:{}: {word}", index + 1));
            }
        }
    }
    assert!(found.is_empty(), "forbidden words: {found:#?}");
}

#[test]
fn messages_have_no_forbidden_word() {
    let mut found = Vec::new();
    for path in git_files::sources() {
        for message in source::messages(&git_files::read(&path)).expect("a source file is Rust") {
            for word in forbidden_in(&message.text) {
                found.push(format!("{path}: {word}: {}", message.text));
            }
        }
    }
    assert!(found.is_empty(), "forbidden words: {found:#?}");
}

#[test]
fn comments_have_no_forbidden_words() {
    let mut found = Vec::new();
    for path in git_files::ending(".rs") {
        if path == file!() {
            continue;
        }
        for (index, line) in git_files::read(&path).lines().enumerate() {
            let comment = line.split_once("//").map(|(_, comment)| comment);
            if comment.is_some_and(|comment| !forbidden_in(comment).is_empty()) {
                found.push(format!("{path}:{}: {}", index + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "comments with forbidden words: {found:#?}");
}

#[test]
fn words_are_matched_whole_and_across_punctuation() {
    assert_eq!(forbidden_in("Nobody: is\ttold"), ["nobody", "is told"]);
    assert!(forbidden_in("amendment, retold").is_empty());
}
