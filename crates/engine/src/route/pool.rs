//! The candidates of a fleet with precomputed keys: features as bits and hashes of names. Planning among a
//! thousand candidates then reads a few words for each.

use std::sync::LazyLock;

use ir::operation::Feature;

use super::candidate::Candidate;

/// Every feature that has a bit; unknown features are compared as strings.
static KNOWN: LazyLock<Vec<Feature>> = LazyLock::new(Feature::all);

#[derive(Clone, Debug)]
pub struct CandidateIndex {
    candidates: Vec<Candidate>,
    /// Parallel to the candidates.
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

/// The features of a request as bits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeatureMask<'r> {
    /// Required and preferred features.
    all: u64,
    /// Features that must not be missing.
    mandatory: u64,
    /// Features without a bit.
    unknown: Vec<&'r Feature>,
}

impl<'r> FeatureMask<'r> {
    pub(super) fn new(needed: impl Iterator<Item = &'r Feature>, may_lack: &[&Feature]) -> Self {
        let mut wanted = Self::default();
        for feature in needed {
            match bit(feature) {
                0 => wanted.unknown.push(feature),
                bit => {
                    wanted.all |= bit;
                    if !may_lack.contains(&feature) {
                        wanted.mandatory |= bit;
                    }
                }
            }
        }
        wanted
    }

    /// Adds preferred features: they exclude no candidate, but count in the ranking.
    #[must_use]
    pub(super) fn with_optional(mut self, preferred: impl Iterator<Item = &'r Feature>) -> Self {
        self.all |= bits(preferred);
        self
    }

    /// Whether the candidate has all mandatory features. Unknown features are compared as strings.
    pub(super) fn is_met(&self, candidate: &Candidate, marks: &CandidateKey) -> bool {
        self.mandatory & !marks.features == 0
            && self
                .unknown
                .iter()
                .all(|feature| candidate.features.contains(*feature))
    }

    /// Number of missing features.
    pub(super) fn lacking(&self, marks: &CandidateKey) -> usize {
        (self.all & !marks.features).count_ones() as usize
    }
}

fn bits<'f>(features: impl IntoIterator<Item = &'f Feature>) -> u64 {
    features.into_iter().fold(0, |bits, feature| bits | bit(feature))
}

/// The bit of a feature; 0 for an unknown one.
fn bit(feature: &Feature) -> u64 {
    let place = KNOWN.iter().position(|known| known == feature);
    match place {
        Some(place @ 0..64) => 1 << place,
        _ => 0,
    }
}
