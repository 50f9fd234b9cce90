use ir::adaptation::{Component, Degradation, Ledger};
use ir::envelope::{SpeechRequest, TranscriptionRequest};
use ir::media::Base64;
use ir::{ErrorKind, Ext, Map, Media, MediaSource, Operation, Payload, Request};
use proptest::prelude::*;

use super::options::CommandOptions;
use super::template::{Slot, Template, TemplateError};
use super::template_values::TemplateValues;

fn filled(template: &[&str], voice: Option<&str>) -> Vec<String> {
    let template = Template::parse(template).expect("a template");
    let arguments = template.fill(|slot| match slot {
        Slot::Input => Some("/in".into()),
        Slot::Voice => voice.map(Into::into),
        _ => None,
    });
    arguments
        .into_iter()
        .map(|argument| argument.into_string().expect("text"))
        .collect()
}

#[test]
fn template_argument_becomes_one_argument_or_none() {
    let template = [
        "-v{voice}",
        "{input}",
        "plain",
        "{{voice}}",
        "",
        "a{voice}b{input}",
    ];
    assert_eq!(
        filled(&template, Some("en us; rm -rf /")),
        [
            "-ven us; rm -rf /",
            "/in",
            "plain",
            "{voice}",
            "",
            "aen us; rm -rf /b/in"
        ]
    );
    assert_eq!(filled(&template, None), ["/in", "plain", "{voice}", ""]);
}

#[test]
fn rejects_template_with_unknown_placeholder() {
    let unknown = Template::parse(&["{imput}"]);
    assert_eq!(unknown, Err(TemplateError::Unknown(String::from("imput"))));
    for unbalanced in ["{input", "input}", "{{input}", "}"] {
        assert!(
            matches!(
                Template::parse(&[unbalanced]),
                Err(TemplateError::Unbalanced(_) | TemplateError::Unknown(_))
            ),
            "{unbalanced}"
        );
    }
    assert_eq!(Template::parse(&["a\0b"]), Err(TemplateError::ZeroByte));
    assert_eq!(Template::parse(&["x"; 257]), Err(TemplateError::TooMany));
}

fn speech() -> SpeechRequest {
    SpeechRequest {
        model: None,
        input: String::from("hello"),
        voice: None,
        format: None,
        speed: None,
        ssml: None,
        ext: Ext::default(),
        rest: Map::new(),
    }
}

fn speaker() -> CommandOptions {
    let arguments = ["-v{voice}", "-s{speed}", "{input}"];
    let mut options =
        CommandOptions::new("speaker", Operation::TextToSpeech, "speak", &arguments).expect("good");
    options.voice = Some(String::from("usual"));
    options.voices = [("nova", "en+f3")]
        .map(|(asked, own)| (String::from(asked), String::from(own)))
        .into();
    options.formats = vec![String::from("wav"), String::from("ogg")];
    options.speed_unit = Some(160.0);
    options
}

fn values(
    speech: SpeechRequest,
    degradation: Option<Degradation>,
) -> (Result<TemplateValues, ir::Error>, Ledger) {
    let mut request = Request::new("r", Payload::Speech(speech));
    request.degradation = degradation;
    let mut ledger = Ledger::new(Component::Adapter);
    (TemplateValues::of(&request, &speaker(), &mut ledger), ledger)
}

#[test]
fn maps_caller_values_to_program_values() {
    let mut asked = speech();
    asked.voice = Some(String::from("nova"));
    asked.format = Some(String::from("ogg"));
    asked.speed = serde_json::Number::from_f64(1.5);
    let (values, ledger) = values(asked, Some(Degradation::Strict));
    let values = values.expect("good");
    assert_eq!(values.voice.as_deref(), Some("en+f3"));
    assert_eq!(values.format.as_deref(), Some("ogg"));
    assert_eq!(values.speed.as_deref(), Some("240"));
    assert!(ledger.entries().is_empty());
}

#[test]
fn unknown_voice_or_format_falls_back_with_adaptation() {
    let mut asked = speech();
    asked.voice = Some(String::from("-w/etc/passwd"));
    asked.format = Some(String::from("mp3"));
    asked.speed = serde_json::Number::from_f64(99.0);
    let (found, ledger) = values(asked.clone(), None);
    let found = found.expect("good");
    assert_eq!(found.voice.as_deref(), Some("usual"));
    assert_eq!(found.format.as_deref(), Some("wav"));
    assert_eq!(found.speed.as_deref(), Some("640"));
    let pointers: Vec<_> = ledger.losses().map(|loss| loss.pointer.as_str()).collect();
    assert_eq!(pointers, ["/payload/voice", "/payload/format", "/payload/speed"]);
    let (refused, _) = values(asked, Some(Degradation::Strict));
    assert_eq!(refused.map_err(|error| error.kind), Err(ErrorKind::Unsupported));
}

fn transcription_values(language: &str, languages: &[&str]) -> Result<TemplateValues, ir::Error> {
    let media = Media::new(MediaSource::Inline(Base64::from_bytes(b"RIFF")), None);
    let asked = TranscriptionRequest {
        model: None,
        audio: media,
        language: Some(String::from(language)),
        prompt: None,
        timestamps: None,
        diarization: None,
        temperature: None,
        ext: Ext::default(),
        rest: Map::new(),
    };
    let request = Request::new("r", Payload::Transcription(Box::new(asked)));
    let arguments = ["{language}", "{model}"];
    let mut options = CommandOptions::new("ear", Operation::SpeechToText, "hear", &arguments).expect("good");
    options.languages = languages.iter().map(ToString::to_string).collect();
    TemplateValues::of(&request, &options, &mut Ledger::new(Component::Adapter))
}

#[test]
fn rejects_unsupported_language() {
    let known = transcription_values("en-us", &["en", "en-US"]).expect("known");
    assert_eq!(known.language.as_deref(), Some("en-US"));
    let strange = transcription_values("de", &["en", "en-US"]).expect_err("unknown");
    assert_eq!(strange.kind, ErrorKind::Unsupported);
}

#[test]
fn whole_argument_placeholder_requires_a_value() {
    let mut options = speaker();
    assert_eq!(options.problem(), None);
    options.arguments = Template::parse(&["-v", "{voice}"]).expect("good");
    assert_eq!(options.problem(), None);
    options.voice = None;
    let problem = options.problem().expect("a problem");
    assert!(problem.contains("{voice}"), "{problem}");
}

proptest! {
    /// Any caller text is either rejected or a plain word: no option, no path, no additional argument.
    #[test]
    fn caller_values_never_become_options_or_paths(text in "\\PC{0,80}|[-./a-z ]{0,8}") {
        match transcription_values(&text, &[]) {
            Ok(values) => {
                let word = values.language.expect("a language");
                prop_assert_eq!(&word, &text);
                prop_assert!(!word.starts_with(['-', '.']) && !word.is_empty());
                prop_assert!(!word.contains(['/', '\\', ' ', '\0', '\n', '$', '=', ',']));
            }
            Err(error) => prop_assert_eq!(error.kind, ErrorKind::InvalidRequest),
        }
    }
}
