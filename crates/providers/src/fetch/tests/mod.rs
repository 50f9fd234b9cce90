//! The fetch guard against a corpus of addresses, notations, redirects and malicious resolvers. A listener on
//! loopback counts connections; the expected count is zero.

mod corpus;

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use engine::port::{Fetch, FetchError, Fetched, Hosts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use self::corpus::{HOSTS, URLS};
use super::address::is_public;
use super::resolve::Resolve;
use super::target::AllowedEndpoints;
use super::{GuardedFetch, PORTS};

/// Stands for the internet: the only address that is not public and may be reached in these tests.
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

#[derive(Debug, Default)]
struct Names {
    answers: Mutex<Vec<(String, Vec<Vec<IpAddr>>)>>,
    asked: AtomicUsize,
}

impl Names {
    /// Each query consumes the next result of its name; the last one repeats.
    fn new(answers: &[(&str, &[&[IpAddr]])]) -> Arc<Self> {
        let own = |list: &[&[IpAddr]]| list.iter().map(|answer| answer.to_vec()).collect();
        let answers = answers
            .iter()
            .map(|(name, list)| (String::from(*name), own(list)));
        Arc::new(Self {
            answers: Mutex::new(answers.collect()),
            asked: AtomicUsize::new(0),
        })
    }
}

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let found = answers.iter_mut().find(|(known, _)| known == name);
        let (_, list) = found.ok_or_else(|| io::Error::other("no such name"))?;
        Ok(if list.len() > 1 {
            list.remove(0)
        } else {
            list[0].clone()
        })
    }
}

/// A server with a response per path that counts connections.
struct Server {
    port: u16,
    visits: Arc<AtomicUsize>,
}

impl Server {
    async fn start(address: IpAddr, answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind((address, 0)).await.unwrap(), answer)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a server of a test ends with the test's runtime"
    )]
    fn on(listener: TcpListener, answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let port = listener.local_addr().unwrap().port();
        let visits = Arc::new(AtomicUsize::new(0));
        let count = visits.clone();
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let answer = answer.clone();
                tokio::spawn(async move {
                    let mut head = vec![0; 8_192];
                    let length = socket.read(&mut head).await.unwrap_or(0);
                    let text = String::from_utf8_lossy(&head[..length]).into_owned();
                    let path = text.split(' ').nth(1).unwrap_or_default();
                    socket.write_all(&answer(path)).await.ok();
                    socket.shutdown().await.ok();
                });
            }
        });
        Self { port, visits }
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}

fn ok(kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn redirect(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

fn fetcher(resolver: Arc<Names>, ports: &[u16]) -> GuardedFetch {
    GuardedFetch {
        resolver,
        may_reach: |address| is_public(address) || address == IpAddr::V4(OUTSIDE),
        doors: doors(ports),
    }
}

fn doors(ports: &[u16]) -> AllowedEndpoints {
    AllowedEndpoints {
        ports: [PORTS, ports].concat(),
        private_hosts: Vec::new(),
    }
}

async fn fetch(guard: &GuardedFetch, url: &str) -> Result<(Fetched, Vec<u8>), FetchError> {
    fetch_from(guard, url, &Hosts::Public).await
}

async fn fetch_from(
    guard: &GuardedFetch,
    url: &str,
    hosts: &Hosts,
) -> Result<(Fetched, Vec<u8>), FetchError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut out = tokio::fs::File::create(file.path()).await.unwrap();
    let fetched = guard.fetch(url, hosts, 10_000, &mut out).await?;
    Ok((fetched, std::fs::read(file.path()).unwrap()))
}

#[tokio::test]
async fn corpus_is_unreachable() {
    let four = Server::start(IpAddr::V4(Ipv4Addr::LOCALHOST), |_| ok("image/png", b"secret")).await;
    let any = TcpListener::bind(("::1", four.port)).await.ok();
    let six = any.map(|listener| Server::on(listener, |_| ok("image/png", b"secret")));
    let guard = fetcher(Names::new(&[]), &[four.port]);
    let here = format!("127.0.0.1:{}", four.port);
    let hosts = HOSTS.iter().map(|host| format!("http://{host}:{}/x", four.port));
    let urls: Vec<String> = hosts
        .chain(URLS.iter().map(|url| url.replace("HERE", &here)))
        .collect();
    assert!(urls.len() >= 80, "{}", urls.len());
    for url in urls {
        let error = fetch(&guard, &url).await.unwrap_err();
        assert_eq!(error.reason(), "blocked_address", "{url}: {error}");
        let error = guard.check(&url, &Hosts::Public).await.unwrap_err();
        assert_eq!(error.reason(), "blocked_address", "{url}: {error}");
    }
    assert_eq!(four.visits() + six.map_or(0, |six| six.visits()), 0);
}

#[tokio::test]
async fn redirects_to_private_addresses_are_refused() {
    let private_hosts = Server::start(IpAddr::V4(Ipv4Addr::LOCALHOST), |_| ok("image/png", b"secret")).await;
    let port = private_hosts.port;
    let spellings: Vec<String> = HOSTS
        .iter()
        .map(|host| format!("http://{host}:{port}/"))
        .collect();
    let count = spellings.len();
    let outside = Server::start(IpAddr::V4(OUTSIDE), move |path| {
        // /3/7 redirects over three hops to the seventh notation.
        let mut parts = path
            .trim_start_matches('/')
            .split('/')
            .filter_map(|part| part.parse::<usize>().ok());
        let (hops, index) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        match hops {
            0 => redirect(&spellings[index % count]),
            _ => redirect(&format!("/{}/{index}", hops - 1)),
        }
    })
    .await;
    let names = Names::new(&[("cdn.example.com", &[&[IpAddr::V4(OUTSIDE)]])]);
    let guard = fetcher(names, &[port, outside.port]);
    for (index, host) in HOSTS.iter().enumerate() {
        let hops = index % 4;
        let url = format!("http://cdn.example.com:{}/{hops}/{index}", outside.port);
        let error = fetch(&guard, &url).await.unwrap_err();
        assert_eq!(error.reason(), "blocked_address", "{host}: {error}");
    }
    assert_eq!(private_hosts.visits(), 0);
    assert!(outside.visits() > count);
    let url = format!("http://cdn.example.com:{}/99/0", outside.port);
    assert_eq!(
        fetch(&guard, &url).await.unwrap_err().reason(),
        "too_many_redirects"
    );
}

#[tokio::test]
async fn names_of_private_addresses_are_refused() {
    let private_hosts = Server::start(IpAddr::V4(Ipv4Addr::LOCALHOST), |_| ok("image/png", b"secret")).await;
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let out = IpAddr::V4(OUTSIDE);
    let names = Names::new(&[
        ("rebind.example.com", &[&[local]]),
        ("mixed.example.com", &[&[out, local]]),
        ("mapped.example.com", &[&["::ffff:127.0.0.1".parse().unwrap()]]),
        ("nat64.example.com", &[&["64:ff9b::127.0.0.1".parse().unwrap()]]),
        ("cloud.example.com", &[&["169.254.169.254".parse().unwrap()]]),
    ]);
    let guard = fetcher(names, &[private_hosts.port]);
    for name in ["rebind", "mixed", "mapped", "nat64", "cloud"] {
        for spelling in ["", ".", "/../", "/?x=http://good.example.com"] {
            let url = format!("http://{name}.example.com:{}/", private_hosts.port);
            let url = if spelling == "." {
                url.replace(".com:", ".com.:")
            } else {
                url + spelling
            };
            assert_eq!(
                fetch(&guard, &url).await.unwrap_err().reason(),
                "blocked_address",
                "{url}"
            );
            let error = guard.check(&url, &Hosts::Public).await.unwrap_err();
            assert_eq!(error.reason(), "blocked_address", "{url}");
        }
    }
    // A name that is not known here may be known to a back-end.
    let elsewhere = format!("http://elsewhere.example.com:{}/", private_hosts.port);
    assert!(guard.check(&elsewhere, &Hosts::Public).await.is_ok());
    assert_eq!(private_hosts.visits(), 0);
}

/// A rebinding resolver, whose second result is private, is queried once, and the connection uses its first
/// result.
#[tokio::test]
async fn name_is_resolved_once_and_pinned() {
    let outside = Server::start(IpAddr::V4(OUTSIDE), |_| ok("image/png", b"public")).await;
    let private_hosts = Server::on(
        TcpListener::bind((Ipv4Addr::LOCALHOST, outside.port))
            .await
            .unwrap(),
        |_| ok("image/png", b"secret"),
    );
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let names = Names::new(&[("turn.example.com", &[&[IpAddr::V4(OUTSIDE)], &[local]])]);
    let guard = fetcher(names.clone(), &[outside.port]);
    let url = format!("http://turn.example.com:{}/a.png", outside.port);
    let (fetched, bytes) = fetch(&guard, &url).await.unwrap();
    assert_eq!(bytes, b"public");
    assert_eq!(fetched.content_type.as_deref(), Some("image/png"));
    assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    // The second query returns a private address, which is refused.
    assert_eq!(fetch(&guard, &url).await.unwrap_err().reason(), "blocked_address");
    assert_eq!((outside.visits(), private_hosts.visits()), (1, 0));
}

#[tokio::test]
async fn server_errors_map_to_reasons() {
    let outside = Server::start(IpAddr::V4(OUTSIDE), |path| match path {
        "/large" => ok("image/png", &[0; 10_001]),
        "/endless" => [
            &b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n\r\n"[..],
            &[0; 20_000],
        ]
        .concat(),
        "/page" => ok("text/html; charset=utf-8", b"<html>log in</html>"),
        "/packed" => b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n".to_vec(),
        "/gone" => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec(),
        "/cut" => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort".to_vec(),
        _ => b"no HTTP at all".to_vec(),
    })
    .await;
    let names = Names::new(&[("a.example.com", &[&[IpAddr::V4(OUTSIDE)]])]);
    let guard = fetcher(names, &[outside.port]);
    for (path, reason) in [
        ("large", "too_large"),
        ("endless", "too_large"),
        ("page", "content_type"),
        ("packed", "content_type"),
        ("gone", "status"),
        ("cut", "unreachable"),
        ("nonsense", "unreachable"),
    ] {
        let url = format!("http://a.example.com:{}/{path}", outside.port);
        assert_eq!(fetch(&guard, &url).await.unwrap_err().reason(), reason, "{path}");
    }
    let unknown = format!("http://unknown.example.com:{}/", outside.port);
    assert_eq!(fetch(&guard, &unknown).await.unwrap_err().reason(), "unreachable");
}

#[tokio::test]
async fn only_allow_listed_hosts_are_fetched() {
    let outside = Server::start(IpAddr::V4(OUTSIDE), |path| match path {
        "/away" => redirect("http://b.example.org/"),
        _ => ok("image/png", b"public"),
    })
    .await;
    let address: &[&[IpAddr]] = &[&[IpAddr::V4(OUTSIDE)]];
    let names = Names::new(&[
        ("a.example.com", address),
        ("b.example.org", address),
        ("example.com", address),
    ]);
    let guard = fetcher(names, &[outside.port]);
    let hosts = Hosts::Listed(vec![String::from("*.example.com")]);
    let url = |name: &str, path: &str| format!("http://{name}:{}{path}", outside.port);
    assert!(
        fetch_from(&guard, &url("a.example.com", "/"), &hosts)
            .await
            .is_ok()
    );
    for (name, path) in [
        ("b.example.org", "/"),
        ("example.com", "/"),
        ("evilexample.com", "/"),
        ("a.example.com", "/away"),
    ] {
        let error = fetch_from(&guard, &url(name, path), &hosts).await.unwrap_err();
        assert_eq!(error.reason(), "blocked_address", "{name}{path}");
    }
}

/// The default configuration cannot reach private networks.
#[tokio::test]
async fn default_guard_refuses_private_addresses() {
    let private_hosts = Server::start(IpAddr::V4(OUTSIDE), |_| ok("image/png", b"secret")).await;
    let guard = GuardedFetch::default();
    let url = format!("http://127.0.0.2:{}/", private_hosts.port);
    assert_eq!(fetch(&guard, &url).await.unwrap_err().reason(), "blocked_address");
    assert_eq!(
        fetch(&guard, "http://127.0.0.2/").await.unwrap_err().reason(),
        "blocked_address"
    );
    assert_eq!(private_hosts.visits(), 0);
}

/// An endpoint that the operator allows is reachable: this host and port only.
#[tokio::test]
async fn allowed_endpoint_does_not_open_others() {
    let open = Server::start(IpAddr::V4(Ipv4Addr::LOCALHOST), |path| match path {
        "/away" => redirect("http://127.0.0.2/"),
        "/cloud" => redirect("http://169.254.169.254/latest"),
        _ => ok("image/png", b"mine"),
    })
    .await;
    let closed = Server::start(IpAddr::V4(Ipv4Addr::LOCALHOST), |_| ok("image/png", b"secret")).await;
    let lan: &[IpAddr] = &[IpAddr::V4(Ipv4Addr::LOCALHOST)];
    let metadata: &[IpAddr] = &[IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254))];
    let guard = GuardedFetch {
        resolver: Names::new(&[("media.lan", &[lan]), ("moved.lan", &[metadata])]),
        ..GuardedFetch::new(vec![
            format!("127.0.0.1:{}", open.port),
            format!("Media.LAN:{}", open.port),
            String::from("moved.lan:80"),
        ])
    };
    for host in ["127.0.0.1", "media.lan"] {
        for hosts in [Hosts::Public, Hosts::Listed(Vec::new())] {
            let url = format!("http://{host}:{}/a", open.port);
            let (_, body) = fetch_from(&guard, &url, &hosts).await.unwrap();
            assert_eq!(body, b"mine");
        }
    }
    for url in [
        format!("http://127.0.0.1:{}/", closed.port),
        format!("http://media.lan:{}/", closed.port),
        format!("http://127.0.0.2:{}/", open.port),
        format!("http://127.1:{}/", open.port),
        format!("http://127.0.0.1:{}/away", open.port),
        format!("http://127.0.0.1:{}/cloud", open.port),
        String::from("http://moved.lan/"),
    ] {
        let error = fetch(&guard, &url).await.unwrap_err();
        assert_eq!(error.reason(), "blocked_address", "{url}");
    }
    assert_eq!(closed.visits(), 0);
}

#[test]
fn public_addresses_are_public() {
    for text in [
        "1.1.1.1",
        "8.8.8.8",
        "93.184.216.34",
        "100.63.255.255",
        "172.32.0.1",
        "192.167.1.1",
        "198.20.0.1",
    ] {
        assert!(is_public(text.parse().unwrap()), "{text}");
    }
    for text in [
        "2606:4700:4700::1111",
        "2a00:1450:4001:81b::200e",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
    ] {
        assert!(is_public(text.parse().unwrap()), "{text}");
    }
}

/// Any text is either refused or has a validated host.
#[test]
fn fuzz_targets() {
    bolero::check!().with_type::<String>().for_each(|text| {
        for url in [
            text.clone(),
            format!("http://{text}/"),
            format!("https://{text}:443"),
        ] {
            if let Ok(target) = super::FetchTarget::parse(&url, &Hosts::Public, &doors(&[])) {
                assert!(matches!(target.url.scheme(), "http" | "https"));
                assert!(target.url.username().is_empty() && target.url.password().is_none());
            }
        }
    });
}
