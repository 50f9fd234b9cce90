//! `cogn new`: creates a valid module. On a terminal it prompts for values that are not given as flags;
//! otherwise the defaults of the flags apply.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use module::file_map::Entry;
use module::manifest::{Modality, Tier};
use module::scaffold::{Blueprint, RESPONSIBILITY_CHARS_MAX, check_name, write};
use module::{FileMap, Format};
use owo_colors::OwoColorize;
use serde_json::json;

use crate::exit::Exit;
use crate::output::{Output, hinted};

#[derive(Debug, Args)]
pub(crate) struct New {
    /// The module's name: lower case letters, digits and hyphens.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// How the answers of the module are used.
    #[arg(long, value_enum)]
    tier: Option<TierName>,
    /// The format to write: 2.2, or 2.5 for streaming and media.
    #[arg(long, value_name = "FORMAT", value_parser = format_name)]
    format: Option<Format>,
    /// The purpose of the module, in one sentence.
    #[arg(long, value_name = "TEXT")]
    responsibility: Option<String>,
    /// A kind of input; may be given several times or separated by commas.
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    input: Vec<Kind>,
    /// The folder in which the folder of the module is created.
    #[arg(long, value_name = "DIR", default_value = "cognitive/modules")]
    dir: PathBuf,
    /// Do not prompt.
    #[arg(short, long)]
    yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TierName {
    /// Answers are used without review: they need high confidence and low risk.
    Exec,
    /// Answers support the decision of a person.
    Decision,
    /// Answers are suggestions only.
    Exploration,
}

impl From<TierName> for Tier {
    fn from(name: TierName) -> Self {
        match name {
            TierName::Exec => Self::Exec,
            TierName::Decision => Self::Decision,
            TierName::Exploration => Self::Exploration,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Text,
    Image,
    Audio,
    Video,
    Document,
}

impl From<Kind> for Modality {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text,
            Kind::Image => Self::Image,
            Kind::Audio => Self::Audio,
            Kind::Video => Self::Video,
            Kind::Document => Self::Document,
        }
    }
}

fn format_name(text: &str) -> Result<Format, String> {
    match text.strip_prefix('v').unwrap_or(text) {
        "2.2" => Ok(Format::V2_2),
        "2.5" => Ok(Format::V2_5),
        _ => Err(String::from("must be 2.2 or 2.5")),
    }
}

impl New {
    pub(crate) fn run(&self, output: &Output) -> Result<Exit> {
        let asks = !self.yes && !output.json && io::stdin().is_terminal() && io::stderr().is_terminal();
        let blueprint = if asks {
            let mut stream = output.stderr();
            self.ask(&mut io::stdin().lock(), &mut stream)?
        } else {
            self.blueprint()?
        };
        let path = self.dir.join(&blueprint.name);
        let files = write(&blueprint);
        create(&path, &files)?;
        if output.json {
            output.json(&json!({ "path": path, "files": files.paths().collect::<Vec<_>>() }))?;
            return Ok(Exit::Success);
        }
        output.line(path.display().to_string())?;
        for file in files.paths() {
            output.note(format!("  {file}"));
        }
        output.note(format!(
            "{} edit prompt.md and schema.json, then run `cogn validate {}`",
            "next:".cyan().bold(),
            blueprint.name
        ));
        Ok(Exit::Success)
    }

    /// The blueprint from the flags alone.
    fn blueprint(&self) -> Result<Blueprint> {
        let Some(name) = &self.name else {
            return Err(hinted("the module needs a name", "cogn new my-module"));
        };
        let blueprint = Blueprint {
            name: name.clone(),
            responsibility: match &self.responsibility {
                Some(text) => text.clone(),
                None => String::from("describe the purpose of this module in one sentence"),
            },
            tier: self.tier.map_or(Tier::Decision, Tier::from),
            format: self.format.unwrap_or(Format::V2_2),
            input: self.input.iter().map(|kind| Modality::from(*kind)).collect(),
        };
        self.judge(blueprint)
    }

    /// Rejects invalid names, responsibilities and formats.
    fn judge(&self, blueprint: Blueprint) -> Result<Blueprint> {
        if let Err(error) = check_name(&blueprint.name) {
            let hint = match &error.suggestion {
                Some(better) => format!("did you mean `{better}`?"),
                None => String::from("lower case letters, digits and hyphens, such as `code-reviewer`"),
            };
            return Err(hinted(error.to_string(), hint));
        }
        if let Some(problem) = responsibility_problem(&blueprint.responsibility) {
            return Err(hinted(problem, "--responsibility \"sort mail into drawers\""));
        }
        let takes_media = blueprint.input.iter().any(|kind| *kind != Modality::Text);
        if takes_media && self.format == Some(Format::V2_2) {
            return Err(hinted(
                "format 2.2 does not support media input",
                "omit --format, or use --format 2.5",
            ));
        }
        Ok(blueprint)
    }

    /// The blueprint from the flags, with prompts for missing values.
    fn ask(&self, from: &mut dyn BufRead, to: &mut dyn Write) -> Result<Blueprint> {
        let mut talk = Prompts { from, to };
        let name = match &self.name {
            Some(name) => name.clone(),
            None => talk.ask("name", "my-module", |text| {
                check_name(text).map_err(|error| error.to_string())
            })?,
        };
        // Rejects an invalid name before the other prompts.
        if check_name(&name).is_err() {
            return Self {
                name: Some(name),
                ..self.plain()
            }
            .blueprint();
        }
        let responsibility = match &self.responsibility {
            Some(text) => text.clone(),
            None => talk.ask(
                "purpose, in one sentence",
                "describe the purpose of this module",
                |text| responsibility_problem(text).map_or(Ok(()), |problem| Err(String::from(problem))),
            )?,
        };
        let tier = match self.tier {
            Some(tier) => tier,
            None => talk.choose("tier (exec, decision, exploration)", "decision")?,
        };
        let input = if self.input.is_empty() {
            talk.choose_many("input (text, image, audio, video, document)", "text")?
        } else {
            self.input.clone()
        };
        let media = input.iter().any(|kind| *kind != Kind::Text);
        let format = match self.format {
            Some(format) => format,
            None if media => Format::V2_5,
            None => {
                let text = talk.ask("format (2.2, or 2.5 to stream)", "2.2", |text| {
                    format_name(text).map(drop)
                })?;
                format_name(&text).unwrap_or(Format::V2_2)
            }
        };
        self.judge(Blueprint {
            name,
            responsibility,
            tier: tier.into(),
            format,
            input: input.into_iter().map(Modality::from).collect(),
        })
    }

    /// The same command with all values unset.
    fn plain(&self) -> Self {
        Self {
            name: None,
            tier: None,
            format: None,
            responsibility: None,
            input: Vec::new(),
            dir: self.dir.clone(),
            yes: true,
        }
    }
}

fn responsibility_problem(text: &str) -> Option<&'static str> {
    if text.trim().is_empty() {
        Some("the responsibility is empty")
    } else if text.contains(['\n', '\r']) {
        Some("the responsibility must be one line")
    } else if text.chars().count() > RESPONSIBILITY_CHARS_MAX {
        Some("the responsibility exceeds 200 characters")
    } else {
        None
    }
}

/// Line prompts with defaults.
struct Prompts<'a> {
    from: &'a mut dyn BufRead,
    to: &'a mut dyn Write,
}

impl Prompts<'_> {
    /// Prompts until the answer is valid. An empty line selects the default.
    fn ask(
        &mut self,
        question: &str,
        default: &str,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Result<String> {
        loop {
            write!(self.to, "{} [{default}]: ", question.bold())?;
            self.to.flush()?;
            let mut line = String::new();
            if self.from.read_line(&mut line)? == 0 {
                bail!("no answer: end of input; use --yes for the defaults");
            }
            let answer = match line.trim() {
                "" => default,
                answer => answer,
            };
            match check(answer) {
                Ok(()) => return Ok(String::from(answer)),
                Err(problem) => writeln!(self.to, "  {problem}")?,
            }
        }
    }

    fn choose<T: ValueEnum>(&mut self, question: &str, default: &str) -> Result<T> {
        let answer = self.ask(question, default, |text| T::from_str(text, true).map(drop))?;
        T::from_str(&answer, true).map_err(anyhow::Error::msg)
    }

    fn choose_many(&mut self, question: &str, default: &str) -> Result<Vec<Kind>> {
        let read = |text: &str| -> Result<Vec<Kind>, String> {
            let words = text.split([',', ' ']).filter(|word| !word.is_empty());
            words.map(|word| Kind::from_str(word, true)).collect()
        };
        let answer = self.ask(question, default, |text| read(text).map(drop))?;
        read(&answer).map_err(anyhow::Error::msg)
    }
}

/// Writes a temporary folder in the same parent and renames it, so that no incomplete module is visible.
fn create(path: &Path, files: &FileMap) -> Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(hinted(
            format!("{} already exists", path.display()),
            "choose another name, or --dir DIR",
        ));
    }
    let parent = path.parent().unwrap_or_else(|| Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    let part = parent.join(format!(".{name}.cogn-new"));
    // Left over from an earlier process that was killed.
    fs::remove_dir_all(&part).ok();
    let made = fill(&part, files).and_then(|()| fs::rename(&part, path));
    if made.is_err() {
        fs::remove_dir_all(&part).ok();
    }
    made.with_context(|| format!("cannot write {}", path.display()))
}

fn fill(folder: &Path, files: &FileMap) -> io::Result<()> {
    fs::create_dir(folder)?;
    for (path, entry) in files.iter() {
        let Entry::Read(bytes) = entry else { continue };
        let target = folder.join(path);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(target, bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use module::Format;
    use module::manifest::{Modality, Tier};

    use super::New;

    fn new(name: Option<&str>) -> New {
        New {
            name: name.map(String::from),
            tier: None,
            format: None,
            responsibility: None,
            input: Vec::new(),
            dir: PathBuf::from("."),
            yes: false,
        }
    }

    #[test]
    fn repeats_prompt_until_answer_is_valid() {
        let mut output = Vec::new();
        let mut input = "My Module\nmy-module\n\nwrong\nexec\ntext, smell\ntext image\n".as_bytes();
        let blueprint = new(None).ask(&mut input, &mut output).unwrap();
        assert_eq!(blueprint.name, "my-module");
        assert_eq!(blueprint.responsibility, "describe the purpose of this module");
        assert_eq!(blueprint.tier, Tier::Exec);
        assert_eq!(blueprint.input, [Modality::Text, Modality::Image]);
        assert_eq!(blueprint.format, Format::V2_5, "no format prompt for media");
        let output = String::from_utf8(output).unwrap();
        assert!(output.contains("begins with a lower case letter"), "{output}");
    }

    #[test]
    fn does_not_prompt_for_values_given_as_flags() {
        let mut output = Vec::new();
        let request = New {
            responsibility: Some(String::from("sort mail")),
            tier: Some(super::TierName::Exploration),
            ..new(Some("sorter"))
        };
        let blueprint = request.ask(&mut "\n2.5\n".as_bytes(), &mut output).unwrap();
        assert_eq!(blueprint.format, Format::V2_5);
        assert_eq!(blueprint.tier, Tier::Exploration);
        assert!(!String::from_utf8(output).unwrap().contains("tier"));
    }

    #[test]
    fn fails_on_end_of_input_and_invalid_name() {
        let mut output = Vec::new();
        let error = new(None).ask(&mut "".as_bytes(), &mut output).unwrap_err();
        assert!(error.to_string().contains("end of input"));
        output.clear();
        let error = new(Some("Bad")).ask(&mut "".as_bytes(), &mut output).unwrap_err();
        assert!(error.to_string().contains("invalid module name `Bad`"), "{error}");
        assert!(output.is_empty());
    }
}
