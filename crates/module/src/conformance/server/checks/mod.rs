//! The list of checks, one file per area, in the order in which they run and are reported.

mod capabilities;
mod chunks;
mod degradation;
mod media;
mod negotiation;
mod recovery;

use super::check::Check;

pub fn checks() -> Vec<Check> {
    [
        capabilities::checks(),
        negotiation::checks(),
        chunks::checks(),
        recovery::checks(),
        media::checks(),
        degradation::checks(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
