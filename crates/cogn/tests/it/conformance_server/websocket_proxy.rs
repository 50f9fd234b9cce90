//! A WebSocket proxy: forwards all bytes unchanged, except one message from the server, which it modifies.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use crate::harness::Server;

/// How the message that contains a given text is modified: it is dropped, or one word is replaced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spoil {
    holding: &'static str,
    becomes: Option<(&'static str, &'static str)>,
}

pub(super) const SOUND: Spoil = Spoil {
    holding: "nothing that anyone says",
    becomes: None,
};
pub(super) const LOST: Spoil = Spoil {
    holding: r#""seq":2,"#,
    becomes: None,
};
pub(super) const CHANGED: Spoil = Spoil {
    holding: r#""final":true"#,
    becomes: Some((r#""count":2"#, r#""count":3"#)),
};
pub(super) const ENDLESS: Spoil = Spoil {
    holding: r#""final":true"#,
    becomes: None,
};

/// Address of a proxy in front of the server; it runs until the tests end.
pub(super) fn proxy_url(server: &Server, spoil: Spoil) -> String {
    let address = String::from(server.address());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for caller in listener.incoming() {
            let (Ok(caller), Ok(server)) = (caller, TcpStream::connect(&address)) else {
                return;
            };
            // A close on either side closes both directions.
            let (from, to) = (caller.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || pass(from, to));
            thread::spawn(move || answer(server, caller, spoil).ok());
        }
    });
    url
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    io::copy(&mut from, &mut to).ok();
    to.shutdown(Shutdown::Both).ok();
}

fn answer(mut server: TcpStream, mut caller: TcpStream, spoil: Spoil) -> io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        server.read_exact(&mut byte)?;
        head.extend_from_slice(&byte);
    }
    caller.write_all(&head)?;
    if !head.starts_with(b"HTTP/1.1 101") {
        pass(server, caller);
        return Ok(());
    }
    let ended = messages(&mut server, &mut caller, spoil);
    caller.shutdown(Shutdown::Both).ok();
    server.shutdown(Shutdown::Both).ok();
    ended
}

/// Server frames are not masked: two bytes, an extended length if needed, and the text.
fn messages(server: &mut TcpStream, caller: &mut TcpStream, spoil: Spoil) -> io::Result<()> {
    loop {
        let mut head = [0; 2];
        server.read_exact(&mut head)?;
        let mut more = vec![0; [0, 2, 8][usize::from(head[1].saturating_sub(125))]];
        server.read_exact(&mut more)?;
        let length = more.iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
        let length = if more.is_empty() {
            u64::from(head[1])
        } else {
            length
        };
        let mut text = vec![0; usize::try_from(length).unwrap()];
        server.read_exact(&mut text)?;
        let message = String::from_utf8_lossy(&text);
        if message.contains(spoil.holding) {
            let Some((from, to)) = spoil.becomes else { continue };
            assert_eq!(from.len(), to.len(), "the length of the frame stays");
            text = message.replace(from, to).into_bytes();
        }
        caller.write_all(&[&head, more.as_slice(), &text].concat())?;
    }
}
