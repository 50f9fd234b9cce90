//! The engine with real tasks, journals in memory, and back-ends that do as they are told.

#[cfg(test)]
mod fleets;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod routing;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod world;
