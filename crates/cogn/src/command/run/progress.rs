//! The progress of a run on a terminal: time, tokens and the current field, in one line of stderr that
//! disappears at the end. Nothing is written if stderr is not a terminal.

use std::sync::Arc;
use std::time::Duration;

use engine::run::{GenerationProgress, ProgressMeter};
use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::output::Output;

const INTERVAL: Duration = Duration::from_millis(100);

pub(crate) struct ProgressLine {
    meter: Arc<ProgressMeter>,
    bar: ProgressBar,
}

impl ProgressLine {
    /// A line for a run whose answer is printed at the end.
    pub(crate) fn new(meter: Arc<ProgressMeter>, output: &Output) -> Self {
        let bar = match output.quiet || output.json {
            true => ProgressBar::hidden(),
            // Hidden if stderr is not a terminal.
            false => ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()),
        };
        if let Ok(style) = indicatif::ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Self { meter, bar }
    }

    /// Draws the line again and again; never returns.
    pub(crate) async fn draw(&self) {
        if self.bar.is_hidden() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(INTERVAL).await;
            self.bar.set_message(line(self.bar.elapsed(), &self.meter.read()));
            self.bar.tick();
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn line(elapsed: Duration, progress: &GenerationProgress) -> String {
    let seconds = format!("{:.1} s", elapsed.as_secs_f64());
    match progress {
        GenerationProgress { tokens: 0, .. } => format!("{seconds}, waiting for the first token"),
        GenerationProgress { tokens, field } => format!("{seconds}, {tokens} tokens, {field}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use engine::run::GenerationProgress;

    use super::line;

    #[test]
    fn line_has_time_tokens_and_field() {
        let elapsed = Duration::from_millis(3_240);
        let mut progress = GenerationProgress::default();
        assert_eq!(line(elapsed, &progress), "3.2 s, waiting for the first token");
        progress.tokens = 56;
        progress.field = String::from("rationale");
        assert_eq!(line(elapsed, &progress), "3.2 s, 56 tokens, rationale");
    }
}
