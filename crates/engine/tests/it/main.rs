//! The engine with real tasks, journals in memory, and back-ends that do as they are told.

#[cfg(test)]
mod composed;
#[cfg(test)]
mod fleets;
#[cfg(test)]
mod full_journal;
#[cfg(test)]
mod gates;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod relays;
#[cfg(test)]
mod relays_over_http;
#[cfg(test)]
mod remarks;
#[cfg(test)]
mod routing;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod world;
