//! Signed tokens (JWT) against a running server: valid ones are accepted, all others are refused.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::harness::{Server, Stage, data, input};

/// An ES256 key pair generated for this test, used nowhere else.
const PRIVATE: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgVz0bJiC45zl1XbdlPSKXv5bIseXExEdqy/UPQe45ZFuhRANCAATr7v4soEqSg68r1oMBCOlqMctX2wfdHY/fgYJPS6rrsdDC3+2v/ZgtkL82pgT4i3N79P43bpHO8bfRqa2p99oz";
const X: &str = "6-7-LKBKkoOvK9aDAQjpajHLV9sH3R2P34GCT0uq67E";
const Y: &str = "0MLf7a_9mC2QvzamBPiLc3v0_jdukc7xt9Gpran32jM";

fn key_set(kid: &str) -> String {
    json!({"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": kid, "x": X, "y": Y}]})
        .to_string()
}

#[expect(clippy::disallowed_methods, reason = "the server lives in real time")]
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn claims() -> Value {
    json!({
        "iss": "https://id.example", "aud": "cogn", "sub": "user-1", "exp": now() + 600,
        "tenant": "acme", "scope": "execute read",
    })
}

fn sign(kid: &str, claims: &Value) -> String {
    let mut header = Header::new(Algorithm::ES256);
    header.kid = Some(String::from(kid));
    let key = EncodingKey::from_ec_der(&STANDARD.decode(PRIVATE).unwrap());
    encode(&header, claims, &key).unwrap()
}

fn serve(stage: &Stage, jwks: &str) -> Server {
    let config = stage.config(&format!(
        "[auth]\nrequired = true\n[auth.jwt]\njwks = {jwks:?}\nissuer = \"https://id.example\"\naudience = \"cogn\"\n\
         algorithms = [\"ES256\"]\nleeway_ms = 0\n"
    ));
    stage.serve_with(&["--config", &config], &[&stage.talker(0)])
}

async fn ask(server: &Server, token: &str) -> (u16, Value) {
    let request = server
        .execute("counter", &input())
        .header("authorization", format!("Bearer {token}"));
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (
        status,
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap(),
    )
}

#[tokio::test]
async fn valid_token_grants_its_tenant_and_invalid_ones_nothing() {
    let stage = Stage::new();
    std::fs::write(stage.path("jwks.json"), key_set("k1")).unwrap();
    let server = serve(&stage, stage.path("jwks.json").to_str().unwrap());
    let (status, body) = ask(&server, &sign("k1", &claims())).await;
    assert_eq!((status, &body["data"]), (200, &data()), "{body}");
    let changed = |name: &str, value: Value| {
        let mut claims = claims();
        claims[name] = value;
        sign("k1", &claims)
    };
    let (status, body) = ask(&server, &changed("scope", json!("read"))).await;
    assert_eq!(
        (status, &body["error"]["details"]["scope"]),
        (403, &json!("execute"))
    );
    let good = sign("k1", &claims());
    let parts: Vec<&str> = good.split('.').collect();
    let forged = URL_SAFE_NO_PAD.encode(json!({"sub": "root", "exp": now() + 600}).to_string());
    let unsigned = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    let shared = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","kid":"k1"}"#);
    for bad in [
        changed("exp", json!(now() - 1)),
        changed("nbf", json!(now() + 600)),
        changed("aud", json!("another")),
        changed("iss", json!("https://id.example.evil")),
        changed("tenant", Value::Null),
        sign("k2", &claims()),
        format!("{}.{forged}.{}", parts[0], parts[2]),
        format!("{unsigned}.{}.", parts[1]),
        format!("{unsigned}.{}.{}", parts[1], parts[2]),
        format!("{shared}.{}.{}", parts[1], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
    ] {
        let (status, body) = ask(&server, &bad).await;
        assert_eq!((status, &body["error"]["code"]), (401, &json!("E4007")), "{bad}");
    }
}

/// A key set served at a URL, with the number of requests for it.
fn publish(kid: &'static str) -> (String, std::sync::Arc<std::sync::atomic::AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut request = [0; 4096];
            if connection.read(&mut request).is_err() {
                continue;
            }
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let body = key_set(kid);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            connection.write_all(format!("{head}{body}").as_bytes()).ok();
        }
    });
    (url, asked)
}

#[tokio::test]
async fn key_set_is_fetched_once_despite_unknown_key_ids() {
    let stage = Stage::new();
    let (url, asked) = publish("k1");
    let server = serve(&stage, &url);
    for _ in 0..5 {
        assert_eq!(ask(&server, &sign("k1", &claims())).await.0, 200);
        assert_eq!(ask(&server, &sign("unknown", &claims())).await.0, 401);
    }
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[tokio::test]
async fn key_set_path_is_relative_to_the_configuration_file() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("conf")).unwrap();
    std::fs::write(stage.path("conf/jwks.json"), key_set("k1")).unwrap();
    let config = stage.path("conf/server.toml");
    let text = "[auth]\nrequired = true\n[auth.jwt]\njwks = \"jwks.json\"\nissuer = \"https://id.example\"\naudience = \"cogn\"\n\
                algorithms = [\"ES256\"]\n";
    std::fs::write(&config, text).unwrap();
    let server = stage.serve_with(&["--config", config.to_str().unwrap()], &[&stage.talker(0)]);
    let (status, body) = ask(&server, &sign("k1", &claims())).await;
    assert_eq!((status, &body["data"]), (200, &data()), "{body}");
}
