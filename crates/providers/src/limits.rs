//! Every bound of this crate in one place.

use std::time::Duration;

/// Most bytes of one answer, stream or not.
pub const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// A conversation's answer that is kept in the server's own words too.
pub const RAW_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most bytes of an answer of pictures or of sound, as they are sent. They are not held in memory.
pub const MEDIA_ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The shortest and the longest picture in base64 that is left in the text of its answer, whatever the threshold of
/// the depot is: the depot keeps in memory what is below it.
pub const EXTRACT_CHARS_MIN: usize = 4 * 1024;
pub const LIFT_CHARS_MAX: usize = 1024 * 1024;
/// Most bytes of the head of an answer, of a line of its framing, and of the head of a question.
pub const ANSWER_HEAD_BYTES_MAX: usize = 256 * 1024;
pub const REQUEST_HEAD_BYTES_MAX: usize = 256 * 1024;
/// Most bytes of an error's body that are read.
pub const ERROR_BYTES_MAX: usize = 64 * 1024;
/// Most bytes of a list of models that are read.
pub const MODELS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most models that are named where one must be chosen.
pub const MODELS_SHOWN_MAX: usize = 8;
/// Most bytes of a set of signing keys.
pub const KEY_SET_BYTES_MAX: usize = 1024 * 1024;
/// Longest time that fetching one may take.
pub const KEY_SET_TIME_MAX: Duration = Duration::from_secs(10);
/// Longest script or recording that is read.
pub const SCRIPT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Most bytes of answers in one recording; with what was asked it stays readable as a script.
pub const RECORDING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most recorded requests that a changed one is compared with.
pub const COMPARED_MAX: usize = 16;
/// Most lines that say what has changed.
pub const DIFFERENCE_LINES_MAX: usize = 40;
/// Most redirects on the way to media.
pub const FETCH_REDIRECTS_MAX: usize = 5;
/// Longest URL of media.
pub const FETCH_URL_BYTES_MAX: usize = 8 * 1024;
/// Most addresses of one name that are looked at.
pub const FETCH_ADDRESSES_MAX: usize = 64;
/// How long connecting, silence and the whole of a fetch may take.
pub const FETCH_CONNECT_MS: u64 = 5_000;
pub const FETCH_IDLE_MS: u64 = 10_000;
pub const FETCH_TOTAL_MS: u64 = 60_000;
/// Most arguments of a program, and the longest word of a caller in one of them.
pub const COMMAND_ARGUMENTS_MAX: usize = 256;
pub const COMMAND_WORD_BYTES_MAX: usize = 64;
/// Most bytes that a program is given to read, and most that it gives where nobody says otherwise.
pub const COMMAND_INPUT_BYTES_MAX: usize = 64 * 1024 * 1024;
pub const COMMAND_OUTPUT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// How long a program may run where nobody says otherwise, and how long a trial of it.
pub const COMMAND_TIME_MAX: Duration = Duration::from_secs(300);
pub const COMMAND_TRIAL_TIME_MAX: Duration = Duration::from_secs(20);
/// Most calls that wait for a program, and what the next one is told to wait.
pub const COMMAND_QUEUE_MAX: usize = 64;
pub const COMMAND_RETRY_AFTER_MS: u64 = 1000;
/// How much of what a program prints is taken at once, and how much of its complaints is kept.
pub const COMMAND_READ_BYTES: usize = 16 * 1024;
pub const COMMAND_STDERR_BYTES_MAX: usize = 4 * 1024;
/// How often the size of a file is looked at while a program writes it.
pub const COMMAND_WATCH: Duration = Duration::from_millis(100);
/// How long an output may stay open after its program has ended.
pub const COMMAND_LINGER: Duration = Duration::from_secs(1);
/// How slow and how fast speech can be, beside the usual.
pub const SPEED_MIN: f64 = 0.25;
pub const SPEED_MAX: f64 = 4.0;
