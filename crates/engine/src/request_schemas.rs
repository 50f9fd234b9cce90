//! Admission of the JSON Schemas of a chat. They are converted, emulated, compiled to a grammar or forwarded:
//! all of these can be recursive, so none sees a schema that is not admitted.

use ir::{ChatRequest, ResponseFormat};
use module::Code;
use module::envelope::ErrorBody;
use module::schema::admission;
use serde_json::Value;

/// The error names the limit, in its message and as the detail `limit`.
pub fn admit_schemas(chat: &ChatRequest) -> Result<(), Box<ErrorBody>> {
    if let Some(ResponseFormat::JsonSchema { schema, .. }) = &chat.response_format {
        admit("the response format", schema)?;
    }
    for tool in &chat.tools {
        if let Some(schema) = &tool.parameters {
            admit(&format!("the tool `{}`", tool.name), schema)?;
        }
    }
    Ok(())
}

fn admit(place: &str, schema: &Value) -> Result<(), Box<ErrorBody>> {
    admission::admit(schema).map(drop).map_err(|refusal| {
        let message = format!("the schema of {place} is not admitted: {refusal}");
        Box::new(ErrorBody::new(Code::E1001, message).detail("limit", refusal.limit()))
    })
}
