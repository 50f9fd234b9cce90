//! The list of checks, one file per area. The order is that in which they are made and told.

mod chunks;
mod capabilities;
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
