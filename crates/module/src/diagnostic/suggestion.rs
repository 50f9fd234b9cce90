//! "Did you mean ...?": the nearest of several known words.

/// The candidate nearest to `word`, if its distance is small enough for a misspelling.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    similar(word, candidates).into_iter().next()
}

/// All candidates whose distance to `word` is small enough for a misspelling, nearest first.
pub fn similar<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let length = word.chars().count();
    let reach = match length {
        0..=2 => 1,
        3..=5 => 2,
        _ => 3,
    };
    let mut similar: Vec<_> = candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= 2 * reach)
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= reach && *distance < candidate.chars().count())
        .collect();
    similar.sort_by_key(|(distance, _)| *distance);
    similar.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Edit distance that counts two swapped neighbours as one edit and ignores case.
fn distance(a: &str, b: &str) -> usize {
    let fold = |text: &str| -> Vec<char> { text.chars().map(|c| c.to_ascii_lowercase()).collect() };
    let (a, b) = (fold(a), fold(b));
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut next = Vec::with_capacity(b.len() + 1);
        next.push(i + 1);
        for j in 0..b.len() {
            let replace = row[j] + usize::from(a[i] != b[j]);
            let mut best = replace.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn finds_nearest_known_word() {
        let tiers = ["exec", "decision", "exploration"];
        assert_eq!(nearest("desicion", tiers), Some("decision"));
        assert_eq!(nearest("Decision", tiers), Some("decision"));
        assert_eq!(nearest("exc", tiers), Some("exec"));
        assert_eq!(nearest("banana", tiers), None);
        assert_eq!(nearest("", tiers), None);
        assert_eq!(distance("teir", "tier"), 1);
    }
}
