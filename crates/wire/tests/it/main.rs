//! The dialects from outside: documents in, documents out.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod convert;
#[cfg(test)]
mod defects;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod fold;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod gemini;
#[cfg(test)]
mod holes;
#[cfg(test)]
mod identity;
#[cfg(test)]
mod lift;
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
