//! Black-box tests of the dialects: documents in, documents out.

#![expect(clippy::disallowed_methods, reason = "tests read fixtures")]

#[cfg(test)]
mod allocated_bytes;
#[cfg(test)]
mod base64_extractor;
#[cfg(test)]
mod convert;
#[cfg(test)]
mod failed_stream_usage;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod fold;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod gemini;
#[cfg(test)]
mod generators;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod identity;
#[cfg(test)]
mod losses;
#[cfg(test)]
mod media;
#[cfg(test)]
mod media_sample;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod ollama;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod regressions;
