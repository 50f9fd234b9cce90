//! Writes a script as YAML: multi-line texts are block scalars, so that recordings and their changes can be
//! reviewed. The output is parsed and compared before it is returned, because YAML escaping rules are
//! complex.

use super::recorder::RecordError;
use crate::scripted::Script;

const HEAD: &str = "# Recorded requests and responses. `cogn test --record` rewrites this file.\n";

impl Script {
    pub fn to_yaml(&self) -> Result<String, RecordError> {
        let form = |error: &dyn std::fmt::Display| RecordError::Form(error.to_string());
        let text = serde_saphyr::to_string(&self.0).map_err(|error| form(&error))?;
        let text = format!("{HEAD}{text}");
        if Self::parse(&text).is_ok_and(|read| read == *self) {
            return Ok(text);
        }
        // JSON is valid, unambiguous YAML.
        let json = serde_json::to_string_pretty(&self.0).map_err(|error| form(&error))?;
        let text = format!("{HEAD}{json}\n");
        match Self::parse(&text) {
            Ok(read) if read == *self => Ok(text),
            Ok(_) => Err(form(&"it does not parse back to the same value")),
            Err(error) => Err(form(&error)),
        }
    }
}
