//! The media in the journaled input of a run: long inline media is replaced by a reference to a file of the
//! run, and put back for a rerun. The files are removed when the run has ended.

use std::io;

use ir::RunId;
use ir::media::Checksum;
use module::Module;
use module::input::media_locations;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use spill::RunFiles;
use tokio_util::sync::CancellationToken;

use crate::limits::JOURNALED_MEDIA_CHARS_MAX;
use crate::run::StoredCommand;

/// The key of a reference: the index of the file.
const FILE: &str = "run_file";

/// The fields of a media item that contain bytes: base64, and a `data:` URL.
const FIELDS: [&str; 2] = ["data", "url"];

/// The command as it is journaled, and the texts of its references in order. Only those of a run that can be
/// rerun are needed.
pub(crate) fn to_journal(module: &Module, command: &mut StoredCommand) -> (String, Vec<String>) {
    let mut texts = Vec::new();
    for pointer in byte_fields(module, &mut command.input) {
        if let Some(Value::String(text)) = value_at(&mut command.input, &pointer)
            && text.len() > JOURNALED_MEDIA_CHARS_MAX
        {
            let text = std::mem::take(text);
            let reference = json!({FILE: texts.len(), "sha256": sha256(&text)});
            if let Some(value) = value_at(&mut command.input, &pointer) {
                *value = reference;
            }
            texts.push((pointer, text));
        }
    }
    let json = serde_json::to_string(&command).unwrap_or_default();
    let put_back = |(pointer, text): (String, String)| {
        if let Some(value) = value_at(&mut command.input, &pointer) {
            *value = Value::String(text.clone());
        }
        text
    };
    let texts = texts.into_iter().map(put_back).collect();
    match command.can_rerun() {
        true => (json, texts),
        false => (json, Vec::new()),
    }
}

/// A journaled command with the media of its references. `None` if a file is missing or incomplete.
pub(crate) fn from_journal(
    module: &Module,
    run: RunId,
    command: &str,
    files: Option<&RunFiles>,
) -> Option<StoredCommand> {
    let mut command: StoredCommand = serde_json::from_str(command).ok()?;
    for pointer in byte_fields(module, &mut command.input) {
        let value = value_at(&mut command.input, &pointer)?;
        let Some(index) = value.get(FILE).and_then(Value::as_u64) else {
            continue;
        };
        let text = files?.read(run, usize::try_from(index).ok()?);
        let text =
            text.inspect_err(|error| tracing::warn!(%run, %error, "media of an unfinished run is lost"));
        let text = text.ok()?;
        if value.get("sha256").and_then(Value::as_str) != Some(&sha256(&text)) {
            return None;
        }
        *value = Value::String(text);
    }
    Some(command)
}

/// Pointers to the fields of media items that exist.
fn byte_fields(module: &Module, input: &mut Map<String, Value>) -> Vec<String> {
    let fields = media_locations(module, input)
        .into_iter()
        .flat_map(|place| FIELDS.map(|field| format!("{place}/{field}")));
    fields.filter(|field| value_at(input, field).is_some()).collect()
}

/// The value at a pointer that is not empty.
fn value_at<'v>(input: &'v mut Map<String, Value>, pointer: &str) -> Option<&'v mut Value> {
    let pointer = pointer.strip_prefix('/')?;
    let (key, rest) = pointer.split_at(pointer.find('/').unwrap_or(pointer.len()));
    let key = key.replace("~1", "/").replace("~0", "~");
    input.get_mut(&key)?.pointer_mut(rest)
}

fn sha256(text: &str) -> String {
    Checksum::from_sha256(&Sha256::digest(text)).value
}

/// The files of one run. They are removed on drop, unless the server stops and leaves the run to the next one.
#[derive(Debug)]
pub(crate) struct KeptFiles {
    files: RunFiles,
    run: RunId,
    /// Not yet written.
    texts: Vec<String>,
    stop: CancellationToken,
}

impl KeptFiles {
    /// `texts` are to be written; a recovered run has its files.
    pub(crate) fn new(
        files: Option<&RunFiles>,
        run: RunId,
        texts: Vec<String>,
        stop: &CancellationToken,
    ) -> Option<Self> {
        Some(Self {
            files: files?.clone(),
            run,
            texts,
            stop: stop.clone(),
        })
    }

    /// A failure only prevents a rerun.
    pub(crate) async fn write(kept: Option<&mut Self>) {
        let Some(kept) = kept.filter(|kept| !kept.texts.is_empty()) else {
            return;
        };
        let (files, run, texts) = (kept.files.clone(), kept.run, std::mem::take(&mut kept.texts));
        let written = tokio::task::spawn_blocking(move || {
            let mut texts = texts.iter().enumerate();
            texts.try_for_each(|(index, text)| files.write(run, index, text))
        });
        if let Err(error) = written.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
            tracing::warn!(%run, %error, "media of a run is not kept: the run cannot be rerun after a crash");
        }
    }
}

impl Drop for KeptFiles {
    fn drop(&mut self) {
        if self.stop.is_cancelled() {
            return;
        }
        match self.files.remove(self.run) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(run = %self.run, %error, "the files of a run could not be removed");
            }
            _ => {}
        }
    }
}

/// Removes files that an earlier server left of runs that have ended.
pub(crate) fn remove_ended(files: Option<&RunFiles>, unfinished: impl Iterator<Item = RunId>) {
    let removed = files.map(|files| files.retain(&unfinished.collect()));
    if let Some(Err(error)) = removed {
        tracing::warn!(%error, "files of ended runs could not be removed");
    }
}

#[cfg(test)]
mod tests {
    use ir::RunId;
    use module::{FileMap, Module, load};
    use serde_json::{Value, json};
    use spill::RunFiles;
    use tokio_util::sync::CancellationToken;

    use super::{KeptFiles, from_journal, to_journal};
    use crate::run::StoredCommand;

    fn module() -> Module {
        let files: FileMap = [
            (
                "module.yaml",
                "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\nmodalities:\n  input: [text, image]\n",
            ),
            ("prompt.md", "$MEDIA_INPUTS $INPUT"),
            ("schema.json", r#"{"data": {"type": "object"}}"#),
        ]
        .map(|(path, text)| (path, String::from(text)))
        .into_iter()
        .collect();
        load(&files).module.unwrap()
    }

    fn command(input: &Value) -> StoredCommand {
        serde_json::from_value(json!({"input": input, "mode": "stream"})).unwrap()
    }

    #[tokio::test]
    async fn long_inline_media_is_in_files_until_the_run_ends() {
        let (module, folder) = (module(), tempfile::tempdir().unwrap());
        let long = "QUJD".repeat(100_000);
        let address = format!("data:image/png;base64,{long}");
        let mut original = command(&json!({
            "images": [
                {"type": "base64", "media_type": "image/png", "data": long},
                {"type": "base64", "media_type": "image/png", "data": "QUJD"},
                {"type": "url", "url": address},
            ],
            // Not media, so it stays.
            "text": "x".repeat(100_000),
        }));
        let before = original.clone();
        let (json, texts) = to_journal(&module, &mut original);
        assert_eq!(original, before, "the run has its input");
        assert!(
            json.len() < 101_000 && !json.contains("QUJDQUJD"),
            "{} bytes",
            json.len()
        );
        assert_eq!(texts, [long, address]);

        let (run, stop) = (RunId::from_parts(1, 2), CancellationToken::new());
        let files = RunFiles::new(folder.path().join("media"), 10_000_000);
        let mut kept = KeptFiles::new(Some(&files), run, texts.clone(), &stop).unwrap();
        KeptFiles::write(Some(&mut kept)).await;
        assert_eq!(from_journal(&module, run, &json, Some(&files)), Some(before));
        assert_eq!(from_journal(&module, run, &json, None), None);
        drop(kept);
        assert_eq!(
            from_journal(&module, run, &json, Some(&files)),
            None,
            "the run has ended"
        );

        // A server that stops leaves the files; a changed file is not used.
        let mut kept = KeptFiles::new(Some(&files), run, texts, &stop).unwrap();
        KeptFiles::write(Some(&mut kept)).await;
        stop.cancel();
        drop(kept);
        assert!(from_journal(&module, run, &json, Some(&files)).is_some());
        std::fs::write(folder.path().join(format!("media/{run}/1")), "QUJD").unwrap();
        assert_eq!(from_journal(&module, run, &json, Some(&files)), None);
    }

    #[tokio::test]
    async fn full_folder_only_prevents_a_rerun() {
        let folder = tempfile::tempdir().unwrap();
        let files = RunFiles::new(folder.path().to_path_buf(), 100);
        let run = RunId::from_parts(1, 2);
        let texts = vec!["a".repeat(80), "b".repeat(80)];
        let mut kept = KeptFiles::new(Some(&files), run, texts, &CancellationToken::new()).unwrap();
        KeptFiles::write(Some(&mut kept)).await;
        assert!(files.read(run, 0).is_ok() && files.read(run, 1).is_err());
        drop(kept);
        // The space is available again.
        assert!(files.write(run, 0, &"c".repeat(100)).is_ok());
    }
}
