//! Temporary media in bodies: written, streamed, and inserted in place of placeholders.

#[cfg(test)]
mod body;
#[cfg(test)]
mod media_placeholders;
