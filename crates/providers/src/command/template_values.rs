//! Caller values in program arguments. A value starts with a letter or a digit and contains no character
//! with a special meaning to programs, paths or shells, so that it cannot become an option or a path.
//! Invalid values are rejected, not corrected.

use ir::adaptation::{Action, Degradation, Ledger};
use ir::envelope::SpeechRequest;
use ir::{Error, ErrorKind, Feature, Payload, Phase, Request};

use super::options::CommandOptions;
use crate::limits::{COMMAND_WORD_BYTES_MAX, SPEED_MAX, SPEED_MIN};

/// The values of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TemplateValues {
    pub(super) voice: Option<String>,
    pub(super) language: Option<String>,
    pub(super) format: Option<String>,
    pub(super) model: Option<String>,
    pub(super) speed: Option<String>,
}

impl TemplateValues {
    /// The values of this request as far as the program supports them; the rest is recorded as adaptations.
    pub(super) fn of(
        request: &Request,
        options: &CommandOptions,
        ledger: &mut Ledger,
    ) -> Result<Self, Error> {
        let mut values = Self {
            voice: options.voice.clone(),
            language: options.language.clone(),
            format: options.formats.first().cloned(),
            model: model(request, options)?,
            speed: Some(speed(1.0, options)),
        };
        match &request.payload {
            Payload::Speech(speech) => values.take_speech(speech, request, options, ledger)?,
            Payload::Transcription(asked) => {
                if let Some(language) = &asked.language {
                    values.language = Some(known_language(language, options)?);
                }
            }
            _ => {}
        }
        Ok(values)
    }

    fn take_speech(
        &mut self,
        speech: &SpeechRequest,
        request: &Request,
        options: &CommandOptions,
        ledger: &mut Ledger,
    ) -> Result<(), Error> {
        if speech.ssml == Some(true) {
            let message = format!("back-end {} accepts plain text, not SSML", options.name);
            return Err(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message));
        }
        if let Some(asked) = &speech.voice {
            match options.voices.get(asked) {
                Some(voice) => self.voice = Some(voice.clone()),
                None if options.voice.as_ref() == Some(asked) => {}
                None => {
                    let reason = format!("back-end {} has no such voice", options.name);
                    check_degradation(request, &Feature::Voices, &reason)?;
                    let applied = options.voice.clone().unwrap_or_default();
                    ledger.changed("/payload/voice", Action::Replaced, asked.clone(), applied, reason);
                }
            }
        }
        if let Some(asked) = &speech.format {
            if options.formats.contains(asked) {
                self.format = Some(asked.clone());
            } else {
                let reason = format!("back-end {} does not support this audio format", options.name);
                check_degradation(request, &Feature::Formats, &reason)?;
                let applied = self.format.clone().unwrap_or_default();
                ledger.changed(
                    "/payload/format",
                    Action::Replaced,
                    asked.clone(),
                    applied,
                    reason,
                );
            }
        }
        if let Some(asked) = speech.speed.as_ref().and_then(serde_json::Number::as_f64) {
            let applied = asked.clamp(SPEED_MIN, SPEED_MAX);
            if applied.to_bits() != asked.to_bits() {
                let reason = "the speed is outside of the supported range";
                ledger.changed("/payload/speed", Action::Clamped, asked, applied, reason);
            }
            self.speed = Some(speed(applied, options));
        }
        Ok(())
    }
}

/// Rejects the loss of this feature if the request is strict about it.
fn check_degradation(request: &Request, feature: &Feature, reason: &str) -> Result<(), Error> {
    match request.degradation_for(feature) {
        Degradation::Strict => Err(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, reason)),
        Degradation::Warn | Degradation::Allow => Ok(()),
    }
}

/// The configured model, else the requested one, else the default.
fn model(request: &Request, options: &CommandOptions) -> Result<Option<String>, Error> {
    let asked = request.model().filter(|model| !model.is_empty());
    match (&options.model, asked) {
        (Some(own), Some(asked)) if own != asked => {
            let message = format!("back-end {} serves only model {own}", options.name);
            Err(Error::new(ErrorKind::NotEnabled, Phase::BeforeSend, message))
        }
        (Some(own), _) => Ok(Some(own.clone())),
        (None, Some(asked)) if options.arguments.uses(super::Slot::Model) => word("model", asked).map(Some),
        (None, _) => Ok(options.default_model.clone()),
    }
}

/// An unsupported language is rejected and not replaced, because the program would treat the input as
/// another one.
fn known_language(asked: &str, options: &CommandOptions) -> Result<String, Error> {
    let asked = word("language", asked)?;
    let same = |known: &&String| known.eq_ignore_ascii_case(&asked);
    match options.languages.iter().find(same) {
        Some(known) => Ok(known.clone()),
        None if options.languages.is_empty() => Ok(asked),
        None => {
            let known = options.languages.join(", ");
            let message = format!("back-end {} supports {known}, not {asked}", options.name);
            Err(Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message))
        }
    }
}

fn speed(factor: f64, options: &CommandOptions) -> String {
    match options.speed_unit {
        Some(unit) => format!("{:.0}", unit * factor),
        None => format!("{factor}"),
    }
}

fn word(what: &str, text: &str) -> Result<String, Error> {
    let mut letters = text.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_alphanumeric());
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-');
    if begins && letters.all(plain) && text.len() <= COMMAND_WORD_BYTES_MAX {
        return Ok(String::from(text));
    }
    Err(Error::invalid_request(format!(
        "`{what}` is not valid as a program argument: only letters, digits, `.`, `_`, `+` and `-`, at most \
         {COMMAND_WORD_BYTES_MAX} characters, starting with a letter or a digit"
    )))
}
