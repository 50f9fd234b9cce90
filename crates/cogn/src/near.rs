//! Suggestions for misspelt words, by edit distance.

/// Up to `count` candidates that are close enough to `word` to be worth naming, nearest first.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    count: usize,
) -> Vec<&'a str> {
    let word = word.to_lowercase();
    let mut near: Vec<_> = candidates
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= 3.min(word.len() / 2))
        .collect();
    near.sort();
    near.into_iter()
        .take(count)
        .map(|(_, candidate)| candidate)
        .collect()
}

/// How many letters must be added, dropped or replaced.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let above = row[j + 1];
            let replace = diagonal + usize::from(left != *right);
            row[j + 1] = replace.min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}
