//! Programs as back-ends: a program reads its input from a file or from standard input, and its output is
//! the response. No shell is involved: arguments are built from a template, one by one, and caller data
//! cannot become an option, a path or an additional argument. The program runs in its own process group, in
//! an empty folder, with the environment that the configuration allows.

mod input;
mod invocation;
mod options;
mod output;
mod process;
mod stdout_stream;
mod template;
mod template_values;
#[cfg(test)]
mod tests;
mod upstream;

pub use options::{CommandOptions, InputFormat, MemoryLimit, OutputFormat};
pub use template::{Slot, Template, TemplateError};
pub use upstream::CommandUpstream;
