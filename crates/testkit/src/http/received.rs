//! A received request: head and body.

use std::io::Read;
use std::net::TcpStream;

/// Maximum size of a request.
const CALL_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Clone, Debug, Default)]
pub struct ReceivedRequest {
    /// Request line and headers, unparsed.
    pub head: String,
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    /// The next request; `None` if the connection was closed.
    pub(super) fn read(caller: &mut TcpStream) -> Option<Self> {
        let mut seen = Vec::new();
        let mut buffer = [0u8; 16 * 1024];
        let border = loop {
            if let Some(at) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            take(caller, &mut buffer, &mut seen)?;
        };
        let body_from = border + 4;
        let head = String::from_utf8_lossy(seen.get(..border)?).into_owned();
        let asked = Self {
            head,
            body: Vec::new(),
        };
        let length = asked
            .header("content-length")
            .and_then(|value| value.parse().ok());
        let whole = body_from + length.unwrap_or(0);
        while seen.len() < whole {
            take(caller, &mut buffer, &mut seen)?;
        }
        Some(Self {
            body: seen.split_off(body_from),
            ..asked
        })
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The path of the URL.
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

fn take(caller: &mut TcpStream, buffer: &mut [u8], seen: &mut Vec<u8>) -> Option<()> {
    let count = caller.read(buffer).ok().filter(|count| *count > 0)?;
    seen.extend_from_slice(buffer.get(..count)?);
    (seen.len() <= CALL_BYTES_MAX).then_some(())
}
