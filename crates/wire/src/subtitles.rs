//! A transcript as subtitles: numbered cues with timestamps, in SRT and WebVTT.
//! <https://www.w3.org/TR/webvtt1/>

use ir::envelope::TranscriptionResponse;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subtitles {
    Srt,
    Vtt,
}

impl Subtitles {
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "srt" => Some(Self::Srt),
            "vtt" => Some(Self::Vtt),
            _ => None,
        }
    }

    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Srt => "application/x-subrip; charset=utf-8",
            Self::Vtt => "text/vtt; charset=utf-8",
        }
    }

    /// The text with timestamps; `None` if the transcript has none.
    pub fn write(self, transcript: &TranscriptionResponse) -> Option<String> {
        let cues = cues(transcript)?;
        let mut text = match self {
            Self::Srt => String::new(),
            Self::Vtt => String::from("WEBVTT\n\n"),
        };
        for (number, cue) in (1..).zip(&cues) {
            if self == Self::Srt {
                text.push_str(&format!("{number}\n"));
            }
            let (from, to) = (self.time(cue.from_ms), self.time(cue.to_ms));
            text.push_str(&format!("{from} --> {to}\n{}\n\n", cue.text));
        }
        Some(text)
    }

    fn time(self, ms: u64) -> String {
        let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
        let point = match self {
            Self::Srt => ',',
            Self::Vtt => '.',
        };
        format!("{hours:02}:{minutes:02}:{seconds:02}{point}{:03}", ms % 1_000)
    }
}

struct Cue {
    from_ms: u64,
    to_ms: u64,
    text: String,
}

/// The segments, else the words, else one cue over the whole duration.
fn cues(transcript: &TranscriptionResponse) -> Option<Vec<Cue>> {
    let lists = [(&transcript.segments, "text"), (&transcript.words, "word")];
    for (list, key) in lists {
        let cues: Option<Vec<Cue>> = list
            .as_ref()
            .and_then(|list| list.iter().map(|one| cue(one, key)).collect());
        if let Some(cues) = cues.filter(|cues| !cues.is_empty()) {
            return Some(cues);
        }
    }
    let to_ms = transcript
        .duration
        .as_ref()
        .and_then(|seconds| ms(seconds.as_f64()))?;
    Some(vec![Cue {
        from_ms: 0,
        to_ms,
        text: one_line(&transcript.text),
    }])
}

fn cue(value: &Value, key: &str) -> Option<Cue> {
    let time = |key: &str| ms(value.get(key).and_then(Value::as_f64));
    let (from_ms, to_ms) = (time("start")?, time("end")?);
    Some(Cue {
        from_ms,
        to_ms: to_ms.max(from_ms),
        text: one_line(value.get(key)?.as_str()?),
    })
}

/// One line per cue text: an empty line would end the cue, and an arrow would start another.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace("-->", "->")
}

fn ms(seconds: Option<f64>) -> Option<u64> {
    let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0)?;
    Some((seconds * 1_000.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Subtitles;

    #[test]
    fn segments_become_cues() {
        let transcript = json!({
            "text": "Hello there. --> Bye.",
            "segments": [
                {"id": 0, "start": 0.0, "end": 1.5, "text": " Hello\nthere."},
                {"id": 1, "start": 3661.25, "end": 3662, "text": " --> Bye."},
            ]
        });
        let transcript = serde_json::from_value(transcript).unwrap();
        assert_eq!(
            Subtitles::Srt.write(&transcript).unwrap(),
            "1\n00:00:00,000 --> 00:00:01,500\nHello there.\n\n\
             2\n01:01:01,250 --> 01:01:02,000\n-> Bye.\n\n"
        );
        assert_eq!(
            Subtitles::Vtt.write(&transcript).unwrap(),
            "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHello there.\n\n\
             01:01:01.250 --> 01:01:02.000\n-> Bye.\n\n"
        );
    }

    #[test]
    fn no_subtitles_without_timestamps() {
        let text = serde_json::from_value(json!({"text": "Hi"})).unwrap();
        assert_eq!(Subtitles::Srt.write(&text), None);
        let broken = json!({"text": "Hi", "segments": [{"start": -1, "end": 2, "text": "Hi"}]});
        assert_eq!(
            Subtitles::Srt.write(&serde_json::from_value(broken).unwrap()),
            None
        );
        let whole = serde_json::from_value(json!({"text": "Hi", "duration": 2})).unwrap();
        assert_eq!(
            Subtitles::Vtt.write(&whole).unwrap(),
            "WEBVTT\n\n00:00:00.000 --> 00:00:02.000\nHi\n\n"
        );
    }
}
