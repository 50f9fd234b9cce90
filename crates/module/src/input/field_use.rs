//! Which fields of an input reach a request of a run: through a placeholder in the prompt, as media, or through
//! an argument, a mapping or a condition of a step. It does not decide what an unused field means.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::free_text::{FREE_TEXT_KEY, input_view};
use super::media_locations;
use crate::compose::{Segment, add_field_use, segments};
use crate::expression::{Path, PathSegment};
use crate::manifest::Modality;
use crate::module::Module;
use crate::prompt::{ARGUMENT_NAMES, Placeholder, Token, argument_key, tokens};
use crate::schema::SchemaView;

/// The fields that a module uses.
#[derive(Debug, Default)]
pub(crate) struct FieldUse {
    /// The whole input is used.
    whole: bool,
    /// `$ARGUMENTS` or one of its words is used.
    arguments: bool,
    names: BTreeSet<String>,
}

impl FieldUse {
    pub(crate) fn of(module: &Module) -> Self {
        let mut found = Self::default();
        let mut shows_input = false;
        for segment in segments(&module.prompt) {
            if let Segment::Text(template) = segment {
                shows_input |= found.add_template(template);
            }
        }
        // A prompt without placeholders is followed by the whole input.
        found.whole |= !shows_input;
        add_field_use(module, &mut found);
        found
    }

    pub(crate) fn add_whole(&mut self) {
        self.whole = true;
    }

    /// Adds the placeholders of a template. Returns whether it has any for the input.
    pub(crate) fn add_template(&mut self, template: &str) -> bool {
        let mut shows_input = false;
        for token in tokens(template) {
            let Token::Placeholder(placeholder) = token else {
                continue;
            };
            shows_input |= placeholder.shows_input();
            match placeholder {
                Placeholder::Input => self.whole = true,
                Placeholder::Arguments | Placeholder::Argument(_) => self.arguments = true,
                Placeholder::Field(name) => {
                    self.names.insert(String::from(name));
                    self.names.extend(name.split('.').next().map(String::from));
                }
                Placeholder::Schema | Placeholder::Media => {}
            }
        }
        shows_input
    }

    /// Adds the field that a path names; `$.input.name` and `$.name` name the same field.
    pub(crate) fn add_path(&mut self, path: &Path) {
        let segments = match path.segments.as_slice() {
            [PathSegment::Name(input), rest @ ..] if input == "input" => rest,
            segments => segments,
        };
        match segments.first() {
            Some(PathSegment::Name(name)) => {
                self.names.insert(name.clone());
            }
            _ => self.whole = true,
        }
    }

    /// Whether the text under `$ARGUMENTS` is used; as part of the whole input only if it is a declared field.
    pub(crate) fn uses_arguments(&self, declared: bool) -> bool {
        self.arguments || self.names.contains(FREE_TEXT_KEY) || (self.whole && declared)
    }

    /// The fields of an input that no request contains, in the order of the input.
    pub(crate) fn unused<'i>(&self, module: &Module, input: &'i Map<String, Value>) -> Vec<&'i str> {
        if self.whole {
            return Vec::new();
        }
        let text = argument_key(input).filter(|_| self.arguments);
        let text = text.and_then(|key| input.get(key));
        let is_argument = |name: &str, value: &Value| {
            (name == FREE_TEXT_KEY || ARGUMENT_NAMES.contains(&name)) && text == Some(value)
        };
        let view = input_view(module);
        let own = input.iter().filter(|(name, _)| !name.starts_with('_'));
        let unused = own.filter(|(name, value)| {
            let field = view.and_then(|view| view.property(name));
            !self.names.contains(*name) && !is_argument(name, value) && !field.is_some_and(is_constant)
        });
        let mut unused: Vec<&str> = unused.map(|(name, _)| name.as_str()).collect();
        if !unused.is_empty() {
            let media = media_locations(module, input);
            let has_media = |name: &str| {
                let place = crate::document::join("", name);
                media.iter().any(|at| {
                    at.strip_prefix(&place)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                })
            };
            unused.retain(|name| !has_media(name));
        }
        unused
    }

    /// The declared fields that no request can contain.
    pub(crate) fn never_used<'m>(&self, module: &'m Module) -> Vec<&'m str> {
        if self.whole {
            return Vec::new();
        }
        let inputs = &module.manifest.modalities.input;
        let takes_media = inputs.iter().any(|kind| *kind != Modality::Text);
        let is_media = |field: SchemaView<'_>| {
            takes_media && (field.is_media() || field.items().is_some_and(SchemaView::is_media))
        };
        let is_argument =
            |name: &str| self.arguments && (name == FREE_TEXT_KEY || ARGUMENT_NAMES.contains(&name));
        let fields = input_view(module).into_iter().flat_map(SchemaView::properties);
        fields
            .filter(|(name, field)| {
                let used = self.names.contains(*name) || is_argument(name);
                !used && !name.starts_with('_') && !is_constant(*field) && !is_media(*field)
            })
            .map(|(name, _)| name)
            .collect()
    }
}

/// A field with a single possible value carries no information.
fn is_constant(field: SchemaView<'_>) -> bool {
    field.listed().len() == 1
}
