//! An answer while its bytes arrive, in whatever pieces they do: first its head, then its content. How an answer is
//! framed is the library's to know; here is what is kept between two pieces, and what an end means. No socket.

use std::sync::LazyLock;

use bytes::Bytes;
use reqwest::header::HeaderMap;
use ureq_proto::client::{Call, RecvBodyResult, RecvResponseResult, SendRequestResult, state};
use ureq_proto::http::{Request, Uri};

use super::Broken;
use crate::limits::ANSWER_HEAD_BYTES_MAX;

#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
}

#[derive(Debug)]
pub(super) struct Reading {
    stage: Stage,
    /// What has arrived and cannot be understood yet.
    rest: Vec<u8>,
}

#[derive(Debug)]
enum Stage {
    Head(Box<Call<state::RecvResponse>>),
    Content(Box<Call<state::RecvBody>>),
    /// All of it is there. Whether the connection can be asked again.
    Ended {
        reusable: bool,
    },
    Lost,
}

impl Reading {
    /// The initial state. Only HEAD and CONNECT requests change the framing of the response, so the library gets
    /// a placeholder request instead of the real one.
    pub(super) fn new() -> Result<Self, Broken> {
        static ANYWHERE: LazyLock<Uri> = LazyLock::new(|| Uri::from_static("http://localhost/"));
        let mut question = Request::new(());
        *question.uri_mut() = ANYWHERE.clone();
        let mut call = Call::new(question)?.proceed();
        call.write(&mut [0; 256])?;
        let Some(SendRequestResult::RecvResponse(call)) = call.proceed()? else {
            return Err(Broken::Cut);
        };
        Ok(Self {
            stage: Stage::Head(Box::new(call)),
            rest: Vec::new(),
        })
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended { .. } | Stage::Lost)
    }

    /// Whether the connection can be asked again: nothing is owed and nothing has come too much.
    pub(super) fn is_reusable(&self) -> bool {
        matches!(self.stage, Stage::Ended { reusable: true }) && self.rest.is_empty()
    }

    /// The head, once these bytes complete it.
    pub(super) fn head(&mut self, input: &[u8]) -> Result<Option<Head>, Broken> {
        let Stage::Head(mut call) = std::mem::replace(&mut self.stage, Stage::Lost) else {
            return Err(Broken::Cut);
        };
        self.rest.extend_from_slice(input);
        loop {
            let (used, response) = call.try_response(&self.rest, false)?;
            self.rest.drain(..used);
            if let Some(response) = response {
                self.stage = match call.proceed() {
                    Some(RecvResponseResult::RecvBody(call)) => Stage::Content(Box::new(call)),
                    Some(RecvResponseResult::Cleanup(call)) => Stage::Ended {
                        reusable: !call.must_close_connection(),
                    },
                    Some(RecvResponseResult::Redirect(call)) => Stage::Ended {
                        reusable: !call.must_close_connection(),
                    },
                    None => return Err(Broken::Cut),
                };
                let (head, ()) = response.into_parts();
                return Ok(Some(Head {
                    status: head.status.as_u16(),
                    headers: head.headers,
                }));
            }
            // Something that only announces the answer was there; the answer may stand behind it.
            if used == 0 {
                break;
            }
        }
        if self.rest.len() > ANSWER_HEAD_BYTES_MAX {
            return Err(Broken::LargeHead);
        }
        self.stage = Stage::Head(call);
        Ok(None)
    }

    /// The content that can be understood with these bytes; empty if they are not enough.
    pub(super) fn content(&mut self, input: &[u8]) -> Result<Bytes, Broken> {
        let Stage::Content(mut call) = std::mem::replace(&mut self.stage, Stage::Lost) else {
            return Err(Broken::Cut);
        };
        let joined;
        let input = if self.rest.is_empty() {
            input
        } else {
            let mut rest = std::mem::take(&mut self.rest);
            rest.extend_from_slice(input);
            joined = rest;
            &joined
        };
        // Framing is only ever taken away.
        let mut content = vec![0; input.len()];
        let (mut used, mut made) = (0, 0);
        loop {
            let from = input.get(used..).unwrap_or_default();
            let (more_used, more_made) = call.read(from, content.get_mut(made..).unwrap_or_default())?;
            (used, made) = (used + more_used, made + more_made);
            if more_used == 0 {
                break;
            }
        }
        content.truncate(made);
        self.rest.extend_from_slice(input.get(used..).unwrap_or_default());
        if self.rest.len() > ANSWER_HEAD_BYTES_MAX {
            return Err(Broken::LargeHead);
        }
        // What goes on until the connection is closed can always be over, and is over only then.
        let open = !call.can_proceed() || call.body_mode() == ureq_proto::BodyMode::CloseDelimited;
        self.stage = match open {
            true => Stage::Content(call),
            false => finished(*call),
        };
        Ok(Bytes::from(content))
    }

    /// The connection was closed: was that all?
    pub(super) fn close(&mut self) -> Result<(), Broken> {
        let stage = std::mem::replace(&mut self.stage, Stage::Lost);
        match stage {
            Stage::Ended { .. } => Ok(()),
            Stage::Content(call) if call.can_proceed() || call.is_ended_chunked() => Ok(()),
            Stage::Content(_) | Stage::Head(_) | Stage::Lost => Err(Broken::Cut),
        }
    }
}

fn finished(call: Call<state::RecvBody>) -> Stage {
    let must_close = match call.proceed() {
        Some(RecvBodyResult::Cleanup(call)) => call.must_close_connection(),
        Some(RecvBodyResult::Redirect(call)) => call.must_close_connection(),
        None => true,
    };
    Stage::Ended {
        reusable: !must_close,
    }
}
