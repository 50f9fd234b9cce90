//! The candidates of a fleet with what can be known of them once and for all: their features as bits and the
//! hash of their names. Planning among a thousand then touches a few words for each.

use std::sync::LazyLock;

use ir::operation::Feature;

use super::candidate::Candidate;

/// Every feature that has a bit; words beyond the vocabulary are compared as words.
static KNOWN: LazyLock<Vec<Feature>> = LazyLock::new(Feature::all);

#[derive(Clone, Debug)]
pub struct CandidateIndex {
    candidates: Vec<Candidate>,
    /// Beside the candidates.
    marks: Vec<CandidateKey>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CandidateKey {
    pub(super) features: u64,
    pub(super) hash: u64,
}

impl CandidateIndex {
    pub fn new(candidates: Vec<Candidate>) -> Self {
        let marks = candidates.iter().map(|candidate| CandidateKey {
            features: bits(&candidate.features),
            hash: candidate.hash(),
        });
        Self {
            marks: marks.collect(),
            candidates,
        }
    }

    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (usize, &Candidate, &CandidateKey)> {
        let pairs = self.candidates.iter().zip(&self.marks);
        pairs
            .enumerate()
            .map(|(index, (candidate, marks))| (index, candidate, marks))
    }
}

/// What a request needs, in the same bits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeatureMask<'r> {
    /// All that it needs, or would rather have.
    all: u64,
    /// The part that it cannot do without.
    firm: u64,
    /// Words that have no bit.
    words: Vec<&'r Feature>,
}

impl<'r> FeatureMask<'r> {
    pub(super) fn new(needed: impl Iterator<Item = &'r Feature>, may_lack: &[&Feature]) -> Self {
        let mut wanted = Self::default();
        for feature in needed {
            match bit(feature) {
                0 => wanted.words.push(feature),
                bit => {
                    wanted.all |= bit;
                    if !may_lack.contains(&feature) {
                        wanted.firm |= bit;
                    }
                }
            }
        }
        wanted
    }

    /// What nobody is left out for, and what counts among those who are left.
    #[must_use]
    pub(super) fn with_optional(mut self, preferred: impl Iterator<Item = &'r Feature>) -> Self {
        self.all |= bits(preferred);
        self
    }

    /// Whether it has all that cannot be done without. Unknown words never can.
    pub(super) fn is_met(&self, candidate: &Candidate, marks: &CandidateKey) -> bool {
        self.firm & !marks.features == 0
            && self
                .words
                .iter()
                .all(|feature| candidate.features.contains(*feature))
    }

    /// How much of it is lacking.
    pub(super) fn lacking(&self, marks: &CandidateKey) -> usize {
        (self.all & !marks.features).count_ones() as usize
    }
}

fn bits<'f>(features: impl IntoIterator<Item = &'f Feature>) -> u64 {
    features.into_iter().fold(0, |bits, feature| bits | bit(feature))
}

/// The bit of a feature; 0 for a word that has none.
fn bit(feature: &Feature) -> u64 {
    let place = KNOWN.iter().position(|known| known == feature);
    match place {
        Some(place @ 0..64) => 1 << place,
        _ => 0,
    }
}
