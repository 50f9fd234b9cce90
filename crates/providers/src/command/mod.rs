//! Any program as a back-end: it gets its input in a file or on its standard input, and what it prints or
//! writes is the answer. No shell is involved anywhere: arguments are made from a template, one by one, and
//! nothing that a caller says can become an option, a path or a second argument. The program runs in a process
//! group of its own, in an empty folder, with the environment that the configuration allows.

mod invocation;
mod input;
mod options;
mod process;
mod output;
mod stdout_stream;
mod template;
#[cfg(test)]
mod tests;
mod upstream;
mod template_values;

pub use options::{CommandOptions, InputFormat, MemoryLimit, OutputFormat};
pub use template::{Slot, Template, TemplateError};
pub use upstream::CommandUpstream;
