//! Closes a JSON answer when the token limit is near. The grammar determines which bytes are legal; this
//! type only orders those that close the document. It must not be used before the token reserve is reached.

/// Position in a JSON text, as far as strings are concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JsonPosition {
    in_string: bool,
    escaped: bool,
}

impl JsonPosition {
    pub(crate) fn advance(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ => {}
            }
        }
    }

    /// The bytes that close the document, best first.
    pub(crate) const fn closing_bytes(self) -> &'static [u8] {
        match (self.in_string, self.escaped) {
            (true, true) => b"\\n",
            (true, false) => b"\"",
            (false, _) => b"}],",
        }
    }
}
