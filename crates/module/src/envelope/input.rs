//! Whether an input fits a module, before any model is asked.

use serde_json::Value;

use super::error::ErrorBody;
use super::violations::{check_section, error_of};
use crate::code::Code;
use crate::module::Module;
use crate::schema::Section;

/// Holds `input` against the module's input schema. The error lists everything that is wrong. Its code is
/// the special one when all problems are of one kind (E1002 missing, E1003 type), else E1001.
pub fn check_input(module: &Module, input: &Value) -> Result<(), Box<ErrorBody>> {
    let mut found = Vec::new();
    check_section(&module.contract, Section::Input, input, &mut found)?;
    if found.is_empty() {
        return Ok(());
    }
    let all = |keyword: &str| found.iter().all(|violation| violation.keyword == keyword);
    let code = if all("required") {
        Code::E1002
    } else if all("type") {
        Code::E1003
    } else {
        Code::E1001
    };
    let error = error_of(code, found.first(), &found, "the input");
    Err(Box::new(error.detail("stage", "input")))
}
