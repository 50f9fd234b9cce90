//! The number of files that this process may open, which includes its connections: raised at start as far as
//! the system permits, and respected by the limit of connections.

use tracing::{info, warn};

/// One file in so many is not a connection of a client, but one to a back-end, the journal, or media.
const OTHER_FILES_SHARE: usize = 4;

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
    // Where the default is a little more than a system permits, no operator has to act.
    if available < configured / 2 {
        warn!(
            configured,
            available, "connections_max reduced to the files that may be open"
        );
    } else {
        info!(
            configured,
            available, "connections_max reduced to the files that may be open"
        );
    }
    settings.connections_max = available;
}

fn available_connections(limit: usize) -> usize {
    (limit - limit / OTHER_FILES_SHARE).max(1)
}

#[cfg(test)]
mod tests {
    use super::available_connections;

    #[test]
    fn connections_leave_files_for_everything_else() {
        assert_eq!(available_connections(1_024), 768);
        assert_eq!(available_connections(1_048_576), 786_432);
        assert_eq!(available_connections(0), 1);
    }
}
