//! Progress bar of a download; hidden if stderr is not a terminal, with `--json` and with `--quiet`.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;

#[derive(Clone, Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(output: &Output) -> Self {
        let target = match output.json || output.quiet {
            true => ProgressDrawTarget::hidden(),
            // indicatif hides it if stderr is not a terminal.
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        let style =
            ProgressStyle::with_template("{msg} [{bar:32}] {bytes}/{total_bytes} {bytes_per_sec} {eta}");
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("=> "));
        }
        Self(bar)
    }

    pub(crate) fn start(&self, what: &str, total: Option<u64>) {
        self.0.set_message(String::from(what));
        self.0.set_position(0);
        match total {
            Some(total) => self.0.set_length(total),
            None => self.0.unset_length(),
        }
        self.0.reset_eta();
    }

    pub(crate) fn at(&self, bytes: u64) {
        self.0.set_position(bytes);
    }

    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}
