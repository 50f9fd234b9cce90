//! Reading a run from a resume point: the only way, for every endpoint that continues a stream.

use engine::port::{RunKind, RunRecord};
use engine::{ReadFrom, RunMode, Subscription};
use ir::RunId;

use crate::response::ApiError;
use crate::state::Gateway;
use crate::stream_limit::{ClientStreams, StreamPermit};

/// A run that is read again.
#[derive(Debug)]
pub(crate) struct Resumed {
    pub(crate) record: RunRecord,
    pub(crate) subscription: Subscription,
    /// `None` if the response is not a stream.
    pub(crate) permit: Option<StreamPermit>,
}

pub(crate) enum ResumeError {
    /// The caller has no such run.
    Unknown,
    /// Events were requested of a relayed call or of a run of another module, or frames of a module run.
    OtherKind,
    Refused(ApiError),
}

impl ResumeError {
    /// The same error for a run that does not exist and for one of the other kind.
    pub(crate) fn or(self, unknown: ApiError) -> ApiError {
        match self {
            Self::Unknown | Self::OtherKind => unknown,
            Self::Refused(error) => error,
        }
    }
}

impl From<ApiError> for ResumeError {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

impl From<engine::Error> for ResumeError {
    fn from(error: engine::Error) -> Self {
        Self::Refused(error.into())
    }
}

/// Opens a run of this client behind what it has received; with `module`, only a run of that module. The
/// events of a module run belong to its tenant; the frames of a relayed call belong to the client that made it.
pub(crate) async fn open(
    gateway: &Gateway,
    client: &ClientStreams,
    run: RunId,
    module: Option<&str>,
    from: ReadFrom,
    mode: RunMode,
) -> Result<Resumed, ResumeError> {
    let caller = &client.caller;
    let record = gateway.engine().find(&caller.tenant, run).await?;
    let record = record.ok_or(ResumeError::Unknown)?;
    let reads_frames = matches!(from, ReadFrom::AfterFrame(_));
    let is_relay = record.kind == RunKind::Relay;
    if is_relay != reads_frames || (module.is_some() && module != record.kind.module()) {
        return Err(ResumeError::OtherKind);
    }
    if reads_frames && record.client != caller.client {
        return Err(ResumeError::Unknown);
    }
    let permit = match mode {
        RunMode::Stream => Some(gateway.stream_permit(client)?),
        RunMode::Sync => None,
    };
    let subscription = gateway.engine().subscribe(&caller.tenant, run, from).await?;
    Ok(Resumed {
        record,
        subscription,
        permit,
    })
}
