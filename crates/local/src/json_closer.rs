//! Bringing a JSON answer to its end when the tokens run out. Which bytes are legal is the grammar's business;
//! this only says which of them leads out of the document fastest. It must not be asked before the reserve is
//! reached: until then the model says what it likes.

/// Where in a JSON text we are, as far as strings go.
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

    /// The bytes that lead out, best first.
    pub(crate) const fn closing_bytes(self) -> &'static [u8] {
        match (self.in_string, self.escaped) {
            (true, true) => b"\\n",
            (true, false) => b"\"",
            (false, _) => b"}],",
        }
    }
}
