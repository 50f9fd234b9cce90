//! All limits of this crate.

use std::time::Duration;

/// Bytes of one response, stream or unary.
pub const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Bytes of a chat response that is preserved as the raw response too.
pub const RAW_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of a response with images or audio. They are not buffered in memory.
pub const MEDIA_ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The shortest and the longest base64 image that stays in the text of its response, whatever the threshold
/// of the spill store: smaller media is stored in memory anyway.
pub const EXTRACT_CHARS_MIN: usize = 4 * 1024;
pub const LIFT_CHARS_MAX: usize = 1024 * 1024;
/// Bytes of a response head, of a line of its framing, and of a request head.
pub const ANSWER_HEAD_BYTES_MAX: usize = 256 * 1024;
pub const REQUEST_HEAD_BYTES_MAX: usize = 256 * 1024;
/// Bytes of an error body that are read.
pub const ERROR_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a model list that are read.
pub const MODELS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Models that are listed in the error if one must be chosen.
pub const MODELS_SHOWN_MAX: usize = 8;
/// Bytes of a set of signing keys.
pub const KEY_SET_BYTES_MAX: usize = 1024 * 1024;
/// Timeout of fetching a set of signing keys.
pub const KEY_SET_TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes of a script or recording that are read.
pub const SCRIPT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Bytes of responses in one recording; including the requests it remains below the script limit.
pub const RECORDING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Recorded requests that a changed request is compared with.
pub const COMPARED_MAX: usize = 16;
/// Lines of the difference between two requests.
pub const DIFFERENCE_LINES_MAX: usize = 40;
/// Redirects per fetch.
pub const FETCH_REDIRECTS_MAX: usize = 5;
/// Bytes of a media URL.
pub const FETCH_URL_BYTES_MAX: usize = 8 * 1024;
/// Addresses of one name that are checked.
pub const FETCH_ADDRESSES_MAX: usize = 64;
/// Connect, idle and total timeouts of a fetch.
pub const FETCH_CONNECT_MS: u64 = 5_000;
pub const FETCH_IDLE_MS: u64 = 10_000;
pub const FETCH_TOTAL_MS: u64 = 60_000;
/// Arguments of a program, and bytes of a caller value in one of them.
pub const COMMAND_ARGUMENTS_MAX: usize = 256;
pub const COMMAND_WORD_BYTES_MAX: usize = 64;
/// Bytes of a program's input, and default limit of its output.
pub const COMMAND_INPUT_BYTES_MAX: usize = 64 * 1024 * 1024;
pub const COMMAND_OUTPUT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Default timeout of a program, and the timeout of its probe.
pub const COMMAND_TIME_MAX: Duration = Duration::from_secs(300);
pub const COMMAND_TRIAL_TIME_MAX: Duration = Duration::from_secs(20);
/// Calls that wait for a program, and the retry delay of a rejected call.
pub const COMMAND_QUEUE_MAX: usize = 64;
pub const COMMAND_RETRY_AFTER_MS: u64 = 1000;
/// Bytes of program output that are read at once, and bytes of standard error that are retained.
pub const COMMAND_READ_BYTES: usize = 16 * 1024;
pub const COMMAND_STDERR_BYTES_MAX: usize = 4 * 1024;
/// Interval at which the size of a program's output file is checked.
pub const COMMAND_WATCH: Duration = Duration::from_millis(100);
/// How long output may stay open after its program has exited.
pub const COMMAND_LINGER: Duration = Duration::from_secs(1);
/// Range of the speech speed relative to normal.
pub const SPEED_MIN: f64 = 0.25;
pub const SPEED_MAX: f64 = 4.0;
/// Secrets of up to this length are redacted only where they stand alone.
pub const SECRET_WORD_BYTES_MAX: usize = 5;
