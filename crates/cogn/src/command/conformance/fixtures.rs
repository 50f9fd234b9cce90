//! `cogn conformance --emit-modules`: writes modules that support every check to a folder.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use module::conformance::server;
use serde_json::json;

use crate::exit::Exit;
use crate::output::{Output, hinted};

/// Writes the files that are missing. Fails if a file exists with other content.
pub(super) fn write(folder: &Path, output: &Output) -> Result<Exit> {
    for file in server::kit() {
        let path = folder.join(file.path);
        match fs::read(&path) {
            Ok(there) if there == file.text.as_bytes() => continue,
            Ok(_) => {
                return Err(hinted(
                    format!("{} already exists with different content", path.display()),
                    "use an empty or a new folder",
                ));
            }
            Err(_) => {}
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        fs::write(&path, file.text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let shown = folder.display();
    if output.json {
        let files: Vec<&str> = server::kit().iter().map(|file| file.path).collect();
        output.json(&json!({"folder": shown.to_string(), "files": files}))?;
        return Ok(Exit::Success);
    }
    output.line(format!(
        "modules written to {shown}/modules; start a server with:"
    ))?;
    output.line(format!(
        "  cogn --modules {shown}/modules serve --backend scripted:{shown}/script.yaml"
    ))?;
    output.line("then run:")?;
    output.line("  cogn conformance --level 4 --url http://127.0.0.1:8787")?;
    Ok(Exit::Success)
}
