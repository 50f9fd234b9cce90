//! The engine with real tasks, journals in memory, and back-ends that do as they are told.

#[cfg(test)]
mod composed;
#[cfg(test)]
mod selection;
#[cfg(test)]
mod journal_full;
#[cfg(test)]
mod gates;
#[cfg(test)]
mod fault_injection;
#[cfg(test)]
mod relays;
#[cfg(test)]
mod relays_over_http;
#[cfg(test)]
mod step_annotations;
#[cfg(test)]
mod routing;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod simulation;
