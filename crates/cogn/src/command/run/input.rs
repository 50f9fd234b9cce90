//! Builds the input object from a file, standard input, free text, single fields and media. It is not
//! validated against the module here.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use module::Module;
use module::input::{assign, free_text, media_field, put_media};
use module::manifest::Modality;
use serde_json::{Map, Value, json};

use crate::output::hinted;

/// Size limit of an input.
pub(crate) const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

#[derive(Clone, Debug, Args)]
pub(crate) struct InputFlags {
    /// The input as a JSON file; `-` reads standard input.
    input: Option<PathBuf>,
    /// Free text instead of a JSON input: `$ARGUMENTS` of the prompt, else the only required text field.
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with = "input",
        allow_hyphen_values = true
    )]
    args: Option<String>,
    /// Set one field of the input: key=value, parsed by the type in the input schema, or key:=json; dots
    /// address fields of objects and items of lists. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Add an image to the input, in the field that the input schema has for it.
    #[arg(long, value_name = "FILE|URL")]
    image: Vec<String>,
    /// Add an audio file.
    #[arg(long, value_name = "FILE|URL")]
    audio: Vec<String>,
    /// Add a video.
    #[arg(long, value_name = "FILE|URL")]
    video: Vec<String>,
    /// Add a document.
    #[arg(long, value_name = "FILE|URL")]
    document: Vec<String>,
}

impl InputFlags {
    /// The media files given as flags; they may be read from any folder.
    pub(crate) fn named_files(&self) -> Vec<PathBuf> {
        let named = [&self.image, &self.audio, &self.video, &self.document];
        let items = named.into_iter().flatten();
        items.filter_map(|item| std::path::absolute(item).ok()).collect()
    }

    pub(crate) fn read(&self, module: &Module) -> Result<Value> {
        let given = match (&self.args, &self.input) {
            (Some(text), _) => Value::Object(free_text(text.as_str())),
            (None, Some(path)) => read_file(path)?,
            (None, None) => json!({}),
        };
        self.complete(module, given)
    }

    /// Adds the fields and media of the flags to the input.
    pub(crate) fn complete(&self, module: &Module, given: Value) -> Result<Value> {
        let Value::Object(mut input) = given else {
            // The validation against the module reports this error with its code.
            return Ok(given);
        };
        for text in &self.set {
            assign(module, &mut input, text).map_err(|error| {
                let hint = error
                    .hint
                    .unwrap_or_else(|| String::from("`cogn info` shows the input schema"));
                hinted(format!("--set: {}", error.message), hint)
            })?;
        }
        for (kind, items) in [
            (Modality::Image, &self.image),
            (Modality::Audio, &self.audio),
            (Modality::Video, &self.video),
            (Modality::Document, &self.document),
        ] {
            for item in items {
                add_media(module, &mut input, kind, item)?;
            }
        }
        Ok(Value::Object(input))
    }
}

fn add_media(module: &Module, input: &mut Map<String, Value>, kind: Modality, item: &str) -> Result<()> {
    let hint = "`cogn info` shows the inputs of the module";
    let field = media_field(module, kind).map_err(|reason| hinted(reason, hint))?;
    put_media(input, &field, media_item(item)?).map_err(|reason| hinted(reason, hint))
}

/// A URL or a file. A file gets an absolute path, because relative paths are resolved in the folder of the
/// module.
fn media_item(item: &str) -> Result<Value> {
    if item.starts_with("http://") || item.starts_with("https://") {
        return Ok(json!({"type": "url", "url": item}));
    }
    let path = Path::new(item);
    let is_file = path
        .metadata()
        .with_context(|| format!("cannot read {item}"))?
        .is_file();
    if !is_file {
        return Err(hinted(
            format!("{item} is not a file"),
            "media must be a file or an http(s) URL",
        ));
    }
    let whole = std::path::absolute(path).with_context(|| format!("cannot resolve {item}"))?;
    let Some(whole) = whole.to_str() else {
        return Err(hinted(format!("the path of {item} is not UTF-8"), "rename it"));
    };
    Ok(json!({"type": "file", "path": whole}))
}

pub(crate) fn read_file(path: &Path) -> Result<Value> {
    let shown = path.display();
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        io::stdin()
            .lock()
            .take(INPUT_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    let length = read.with_context(|| format!("cannot read the input {shown}"))?;
    if length as u64 > INPUT_BYTES_MAX {
        anyhow::bail!("the input {shown} exceeds {INPUT_BYTES_MAX} bytes (E1005)");
    }
    serde_json::from_slice(&bytes).with_context(|| format!("the input {shown} is not JSON"))
}
