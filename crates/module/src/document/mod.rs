//! Texts that people write: YAML and JSON, parsed within limits and with places kept, so that a
//! pointer into the value can be turned back into a line of the file.

mod yaml;

pub use yaml::{YamlError, YamlErrorKind, parse_yaml};
