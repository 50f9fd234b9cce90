//! Back-ends against servers that say exactly what a test wants, and against a real one.

#[cfg(test)]
mod command;
#[cfg(test)]
mod defects;
#[cfg(test)]
mod dialects;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod forwards;
#[cfg(test)]
mod held;
#[cfg(test)]
mod http;
#[cfg(test)]
mod kinds;
#[cfg(test)]
mod patches;
#[cfg(test)]
mod peers;
#[cfg(test)]
mod raw;
#[cfg(test)]
mod returned;
#[cfg(test)]
mod server;
#[cfg(test)]
mod ways;
#[cfg(test)]
mod whole;
