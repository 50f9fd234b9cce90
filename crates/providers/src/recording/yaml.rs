//! A script as YAML: texts of several lines stand as such, so that a recording can be read and a change in
//! it can be reviewed. What is written is read back before it is handed out: YAML has too many rules to
//! trust any writer of it blindly.

use super::recorder::RecordError;
use crate::scripted::Script;

const HEAD: &str =
    "# A recording: what was asked, and what was answered. `cogn test --record` writes it anew.\n";

impl Script {
    pub fn to_yaml(&self) -> Result<String, RecordError> {
        let form = |error: &dyn std::fmt::Display| RecordError::Form(error.to_string());
        let text = serde_saphyr::to_string(&self.0).map_err(|error| form(&error))?;
        let text = format!("{HEAD}{text}");
        if Self::parse(&text).is_ok_and(|read| read == *self) {
            return Ok(text);
        }
        // JSON is YAML, with nothing left to interpretation.
        let json = serde_json::to_string_pretty(&self.0).map_err(|error| form(&error))?;
        let text = format!("{HEAD}{json}\n");
        match Self::parse(&text) {
            Ok(read) if read == *self => Ok(text),
            Ok(_) => Err(form(&"it reads back as something else")),
            Err(error) => Err(form(&error)),
        }
    }
}
