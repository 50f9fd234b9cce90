//! The engine with real tasks, journals in memory, and scripted back-ends.

#[cfg(test)]
mod composed;
#[cfg(test)]
mod fault_injection;
#[cfg(test)]
mod faulty_journal;
#[cfg(test)]
mod gates;
#[cfg(test)]
mod readers;
#[cfg(test)]
mod relays;
#[cfg(test)]
mod relays_over_http;
#[cfg(test)]
mod routing;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod selection;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod step_annotations;
