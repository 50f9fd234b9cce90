//! Connections to a back-end: custom certificates, and proxies.

use std::net::SocketAddr;
use std::sync::Arc;

use ir::{Dialect, ErrorKind};
use providers::{ClientOptions, Proxy};
use testkit::fault::{events, stream_of};
use testkit::http::scripted;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::kinds::{ask, chat, client, error_of, options, run, text};

/// A TLS back-end with a certificate for `localhost` that is trusted only through its own file.
async fn secure_server() -> (SocketAddr, String) {
    let made = rcgen::generate_simple_self_signed([String::from("localhost")]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a good certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::runtime::Handle::current().spawn(async move {
        while let Ok((caller, _)) = listener.accept().await {
            let Ok(mut caller) = acceptor.accept(caller).await else {
                continue;
            };
            let mut seen = vec![0; 64 * 1024];
            let mut length = 0;
            // The request ends with the closing brace of its JSON.
            while !seen[..length].ends_with(b"}") {
                match caller.read(&mut seen[length..]).await {
                    Ok(count @ 1..) => length += count,
                    _ => break,
                }
            }
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            let body = stream_of(Dialect::OpenaiChat, &events("Safe."));
            caller.write_all(&[head.as_bytes(), &body].concat()).await.ok();
            caller.shutdown().await.ok();
        }
    });
    (address, made.cert.pem())
}

#[test]
fn configured_certificate_is_trusted_for_its_host_only() {
    run(async {
        let (address, pem) = secure_server().await;
        let port = address.port();
        let trusting = ClientOptions {
            ca_pem: vec![pem.into_bytes()],
            ..ClientOptions::default()
        };
        let good = providers::openai(client(&trusting), options(&format!("https://localhost:{port}")));
        let seen = ask(&good, chat()).await;
        assert_eq!(text(&seen).as_deref(), Ok("Safe."), "{seen:?}");

        let stranger = providers::openai(
            client(&ClientOptions::default()),
            options(&format!("https://localhost:{port}")),
        );
        let other_host = providers::openai(client(&trusting), options(&format!("https://127.0.0.1:{port}")));
        for back_end in [stranger, other_host] {
            let seen = ask(&back_end, chat()).await;
            let error = error_of(&seen);
            assert_eq!(error.kind, ErrorKind::Network, "{error:?}");
            assert!(error.message.contains("no secure connection"), "{error:?}");
        }
    });
}

/// A SOCKS5 proxy without authentication, for one connection.
async fn socks_proxy() -> (SocketAddr, tokio::task::JoinHandle<SocketAddr>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let carried = tokio::runtime::Handle::current().spawn(async move {
        let (mut caller, _) = listener.accept().await.expect("a caller");
        let mut greeting = [0; 2];
        caller.read_exact(&mut greeting).await.expect("a greeting");
        let mut methods = vec![0; usize::from(greeting[1])];
        caller.read_exact(&mut methods).await.expect("methods");
        caller.write_all(&[5, 0]).await.expect("the caller listens");
        let mut wish = [0; 10];
        caller
            .read_exact(&mut wish)
            .await
            .expect("an address of four bytes");
        let target = SocketAddr::from((
            [wish[4], wish[5], wish[6], wish[7]],
            u16::from_be_bytes([wish[8], wish[9]]),
        ));
        caller
            .write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
            .await
            .expect("the caller listens");
        let mut server = TcpStream::connect(target).await.expect("the target is there");
        copy_bidirectional(&mut caller, &mut server).await.ok();
        target
    });
    (address, carried)
}

#[test]
fn calls_go_through_a_socks_proxy() {
    run(async {
        let server = scripted(Dialect::OpenaiChat, "- reply: carried\n");
        let (proxy, carried) = socks_proxy().await;
        let way = ClientOptions {
            proxy: Some(Proxy {
                http: Some(format!("socks5://{proxy}")),
                ..Proxy::default()
            }),
            ..ClientOptions::default()
        };
        let back_end = providers::openai(client(&way), options(&server.url("")));
        let seen = ask(&back_end, chat()).await;
        assert_eq!(text(&seen).as_deref(), Ok("carried"), "{seen:?}");
        drop(back_end);
        assert_eq!(carried.await.expect("the proxy ran"), server.address);
    });
}
