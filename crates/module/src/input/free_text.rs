//! Decides where free text goes: into `$ARGUMENTS` if a placeholder uses it, else into the only required text
//! field. The only place with this rule; the command line, chat, MCP, HTTP and calls of modules pass the text
//! as `$ARGUMENTS`. It does not validate the input.

use serde_json::{Map, Value};

use crate::code::Code;
use crate::envelope::ErrorBody;
use crate::module::Module;
use crate::prompt::ARGUMENT_NAMES;
use crate::schema::{SchemaView, Section};

/// The key of free text in an input.
pub const FREE_TEXT_KEY: &str = "$ARGUMENTS";

/// The field for free text in a module whose input is not described.
const UNDECLARED_FIELD: &str = "query";

/// An input that has only free text.
pub fn free_text(text: impl Into<String>) -> Map<String, Value> {
    Map::from_iter([(String::from(FREE_TEXT_KEY), Value::String(text.into()))])
}

/// Moves the free text of an input to where the module uses it. Returns the key that has the text, if there
/// is any text.
pub(crate) fn place_free_text(
    module: &Module,
    input: &mut Map<String, Value>,
) -> Result<Option<String>, Box<ErrorBody>> {
    let Some(Value::String(text)) = input.get(FREE_TEXT_KEY) else {
        return Ok(None);
    };
    let text = text.clone();
    let view = input_view(module);
    let is_free = |name: &str| input.get(name).is_none_or(|value| *value == text.as_str());
    let required: Vec<&str> = view.into_iter().flat_map(required_texts).collect();
    let candidates: Vec<&str> = required.iter().copied().filter(|name| is_free(name)).collect();
    if accepts_arguments(module, view) {
        // `$ARGUMENTS` is another name of these fields.
        for name in candidates.iter().filter(|name| ARGUMENT_NAMES.contains(name)) {
            input.insert(String::from(*name), Value::from(text.as_str()));
        }
        return Ok(Some(String::from(FREE_TEXT_KEY)));
    }
    let undescribed = view.is_none_or(|view| view.properties().is_empty());
    let field = match candidates.as_slice() {
        [only] => String::from(*only),
        [] if undescribed && is_free(UNDECLARED_FIELD) => String::from(UNDECLARED_FIELD),
        _ => return Err(no_place(module, view, &required)),
    };
    input.shift_remove(FREE_TEXT_KEY);
    input.insert(field.clone(), Value::String(text));
    Ok(Some(field))
}

/// The schema of the input, if it has one.
pub(crate) fn input_view(module: &Module) -> Option<SchemaView<'_>> {
    let contract = &module.contract;
    let schema = contract.schema(Section::Input)?;
    Some(SchemaView::new(contract.document(), schema))
}

/// Whether the module uses `$ARGUMENTS`: in a placeholder, or as a field that it declares.
fn accepts_arguments(module: &Module, view: Option<SchemaView<'_>>) -> bool {
    let declared = view.is_some_and(|view| view.declares(FREE_TEXT_KEY));
    module.field_use().uses_arguments(declared)
}

/// The required fields for any text.
fn required_texts(view: SchemaView<'_>) -> Vec<&str> {
    let required = view.required();
    let is_text = |name: &str| {
        let field = view.property(name);
        field.is_some_and(|field| field.allows("string") && field.listed().is_empty())
    };
    required
        .into_iter()
        .filter(|name| *name != FREE_TEXT_KEY && is_text(name))
        .collect()
}

fn no_place(module: &Module, view: Option<SchemaView<'_>>, required: &[&str]) -> Box<ErrorBody> {
    let fields: Vec<&str> = match required {
        [] => view
            .into_iter()
            .flat_map(SchemaView::properties)
            .map(|(name, _)| name)
            .collect(),
        required => required.to_vec(),
    };
    let (name, listed) = (module.name(), fields.join(", "));
    let message = match required {
        [] => format!("`{name}` has no field for free text; its fields are {listed}"),
        [one] => format!("`{name}` has no field for free text besides {one}, which is given"),
        _ => format!("free text fits several fields of `{name}`: {listed}"),
    };
    let error = ErrorBody::new(Code::E1002, message)
        .detail("stage", "input")
        .detail("fields", fields)
        .suggest("give the fields by name, as a JSON object or with `--set FIELD=VALUE`");
    Box::new(error)
}
