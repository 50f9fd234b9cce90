//! `cogn new`: creates a valid module. On a terminal it prompts for values that are not given as flags;
//! otherwise the defaults of the flags apply.

mod folder;
mod prompts;

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use module::Format;
use module::manifest::{Modality, Tier};
use module::scaffold::{
    Blueprint, FieldError, OutputField, RESPONSIBILITY_CHARS_MAX, check_all, check_name, derive_name, write,
};
use owo_colors::OwoColorize;
use serde_json::json;

use self::folder::create;
use self::prompts::Prompts;
use crate::exit::Exit;
use crate::output::{Output, hinted};

const TITLE_CHARS_MAX: usize = 80;

#[derive(Debug, Args)]
pub(crate) struct New {
    /// The module's name: lower case letters, digits and hyphens. Or a name for people, in any script, from which
    /// the name of the module and its folder is derived.
    #[arg(value_name = "NAME")]
    given: Option<String>,
    /// The name of the module and its folder, if it is not derived from the name for people.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// A field of the answer: vendor:string, items:list, prices:list:number, label:billing|bug, note:string? (optional).
    /// May be given several times.
    #[arg(long, value_name = "NAME:TYPE", conflicts_with = "from_example")]
    field: Vec<String>,
    /// A JSON file with an example of an answer, from which the fields are inferred.
    #[arg(long, value_name = "FILE")]
    from_example: Option<PathBuf>,
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
        // The video of an example is fetched from a URL, so its test is not recorded here.
        let records = !blueprint.input.contains(&Modality::Video);
        create(&path, &files, records)?;
        let recording = records.then_some("tests/recordings/example.yaml");
        let paths: Vec<&str> = files.paths().chain(recording).collect();
        if output.json {
            output.json(&json!({ "path": path, "files": paths }))?;
            return Ok(Exit::Success);
        }
        output.line(path.display().to_string())?;
        for file in paths {
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
        let (name, title) = self.names()?;
        let Some(name) = name else {
            let hint = "give one with --name, such as --name code-reviewer";
            let title = title.unwrap_or_default();
            return Err(hinted(
                format!("no folder name can be derived from `{title}`"),
                hint,
            ));
        };
        let blueprint = Blueprint {
            name,
            title,
            responsibility: match &self.responsibility {
                Some(text) => text.clone(),
                None => String::from("describe the purpose of this module in one sentence"),
            },
            tier: self.tier.map_or(Tier::Decision, Tier::from),
            format: self.format.unwrap_or(Format::V2_2),
            input: self.input.iter().map(|kind| Modality::from(*kind)).collect(),
            output: self.fields()?,
        };
        self.judge(blueprint)
    }

    /// The name of the folder, unless it is unknown, and the name for people, if there is one.
    fn names(&self) -> Result<(Option<String>, Option<String>)> {
        let title = self.given.as_ref().filter(|given| is_title(given));
        let title = title.map(|title| String::from(title.trim()));
        if let Some(title) = &title
            && title.chars().count() > TITLE_CHARS_MAX
        {
            let message = format!("the name for people is longer than {TITLE_CHARS_MAX} characters");
            return Err(hinted(
                message,
                "shorten it; --responsibility takes a whole sentence",
            ));
        }
        match (&self.name, &self.given, &title) {
            (Some(name), _, _) => Ok((Some(name.clone()), title)),
            (None, Some(given), None) => Ok((Some(given.clone()), None)),
            (None, _, Some(text)) => Ok((derive_name(text), title)),
            (None, None, None) => Err(hinted("the module needs a name", "cogn new my-module")),
        }
    }

    /// The fields of the answer, from the flags.
    fn fields(&self) -> Result<Vec<OutputField>> {
        let refuse = |error: FieldError| hinted(error.message, error.hint);
        if let Some(path) = &self.from_example {
            let shown = path.display();
            let bytes = fs::read(path).with_context(|| format!("cannot read {shown}"))?;
            let example = serde_json::from_slice(&bytes).with_context(|| format!("{shown} is not JSON"))?;
            return OutputField::of_example(&example).map_err(refuse);
        }
        let fields = self.field.iter().map(|text| OutputField::parse(text));
        let fields = fields.collect::<Result<Vec<_>, _>>().map_err(refuse)?;
        if !fields.is_empty() {
            check_all(&fields).map_err(refuse)?;
        }
        Ok(fields)
    }

    /// Rejects invalid names, responsibilities and formats.
    fn judge(&self, blueprint: Blueprint) -> Result<Blueprint> {
        refuse_name(&blueprint.name)?;
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
        let (name, title) = match (&self.name, &self.given) {
            (None, None) => (None, None),
            _ => self.names()?,
        };
        let name = match name {
            Some(name) => name,
            None => talk.ask("name", "my-module", |text| {
                check_name(text).map_err(|error| error.to_string())
            })?,
        };
        // Rejects invalid names and fields before the other prompts.
        refuse_name(&name)?;
        let output = self.fields()?;
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
            title,
            responsibility,
            tier: tier.into(),
            format,
            input: input.into_iter().map(Modality::from).collect(),
            output,
        })
    }
}

/// Whether this is a name for people and not a mistake in a module's name: it has a space or another script, and
/// is not a path.
fn is_title(text: &str) -> bool {
    let is_path = text.starts_with('.') || text.contains(['/', '\\']) || text.contains(char::is_control);
    !is_path && text.trim().contains(|c: char| c.is_whitespace() || !c.is_ascii())
}

fn refuse_name(name: &str) -> Result<()> {
    check_name(name).map_err(|error| {
        let hint = match &error.suggestion {
            Some(better) => format!("did you mean `{better}`?"),
            None => String::from("lower case letters, digits and hyphens, such as `code-reviewer`"),
        };
        hinted(error.to_string(), hint)
    })
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use module::Format;
    use module::manifest::{Modality, Tier};

    use super::New;

    fn new(name: Option<&str>) -> New {
        New {
            given: name.map(String::from),
            name: None,
            field: Vec::new(),
            from_example: None,
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
