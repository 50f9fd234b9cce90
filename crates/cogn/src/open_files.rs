//! The number of files that this process may open, which includes its connections: raised at start as far as
//! the system permits, and respected by the limit of connections.

use tracing::warn;

/// Files that are not connections: journal, modules, spilled media, timers.
const OTHER_FILES: usize = 256;
/// A connection may need another one to a back-end.
const FILES_PER_CONNECTION: usize = 2;

/// Raises the soft limit to the hard limit. The limit from now on; `None` if there is none, or none is known.
pub(crate) fn raise_limit() -> Option<usize> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let before = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: before.maximum,
            maximum: before.maximum,
        };
        if before.current != before.maximum
            && let Err(error) = setrlimit(Resource::Nofile, raised)
        {
            warn!(%error, "the limit of open files could not be raised");
        }
        let limit = getrlimit(Resource::Nofile).current?;
        usize::try_from(limit).ok()
    }
    #[cfg(not(unix))]
    None
}

/// Permits only as many connections as files are available, with a log line if that is less than configured.
pub(crate) fn clamp_connections(settings: &mut gateway::Settings, open_files_max: Option<usize>) {
    let configured = settings.connections_max;
    let Some(limit) = open_files_max else { return };
    let available = available_connections(limit);
    if configured <= available {
        return;
    }
    warn!(
        configured,
        connections_max = available,
        open_files_max = limit,
        "connections_max reduced to the files that may be open"
    );
    settings.connections_max = available;
}

fn available_connections(limit: usize) -> usize {
    (limit.saturating_sub(OTHER_FILES) / FILES_PER_CONNECTION).max(1)
}

#[cfg(test)]
mod tests {
    use super::available_connections;

    #[test]
    fn connections_leave_files_for_everything_else() {
        assert_eq!(available_connections(1_024), 384);
        assert_eq!(available_connections(1_048_576), 524_160);
        assert_eq!(available_connections(100), 1);
    }
}
