//! Certificates from files.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use sapwood::Db;
use sapwood_server::Service;
use sapwood_server::net::tls::{TlsError, acceptor};
use sapwood_server::net::{Http, Listeners, Server};
use sapwood_server::service::Options;
use tempfile::TempDir;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};
use tokio_util::sync::CancellationToken;

/// A time that is over only when something is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn certificates_are_taken_or_named() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let other =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).expect("it is written");
        path
    };
    let certificate = file("certificate", &made.cert.pem());
    let key = file("key", &made.signing_key.serialize_pem());
    let other_key = file("other", &other.signing_key.serialize_pem());
    let empty = file("empty", "");
    assert!(acceptor(&certificate, &key, None).is_ok());
    assert!(acceptor(&certificate, &key, Some(&certificate)).is_ok());
    let refused = |result: Result<_, TlsError>| result.err().map(|error| error.to_string());
    let swapped = refused(acceptor(&certificate, &other_key, None)).expect("another key");
    assert!(swapped.contains("cannot be used together"), "{swapped}");
    let cases = [
        acceptor(&empty, &key, None),
        acceptor(&certificate, &empty, None),
        acceptor(&certificate, &key, Some(&empty)),
    ];
    for result in cases {
        let words = refused(result).expect("an empty file");
        assert!(words.contains("empty holds no "), "{words}");
        assert!(!words.contains("BEGIN"), "{words}");
    }
}

/// An authority, and files of certificates that it has signed.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

/// A certificate and its key, as files and as bytes.
struct Signed {
    certificate: PathBuf,
    key: PathBuf,
    chain: Vec<CertificateDer<'static>>,
    secret: PrivateKeyDer<'static>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority");
        Authority { issuer, folder: tempfile::tempdir().expect("a directory") }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("it is written");
        path
    }

    fn sign(&self, name: &str) -> Signed {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &self.issuer).expect("it signs");
        Signed {
            certificate: self.file(&format!("{name}.crt"), &certificate.pem()),
            key: self.file(&format!("{name}.key"), &key.serialize_pem()),
            chain: vec![certificate.der().clone()],
            secret: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        }
    }

    /// A client that trusts the authority; with a certificate of its own, if there is one.
    fn client(&self, own: Option<&Signed>) -> ClientConnection {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("an authority");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let config = match own {
            None => config.with_no_client_auth(),
            Some(own) => config
                .with_client_auth_cert(own.chain.clone(), own.secret.clone_key())
                .expect("a certificate"),
        };
        let name = ServerName::try_from("localhost").expect("a name");
        ClientConnection::new(Arc::new(config), name).expect("a connection")
    }
}

/// What a server answers to `PING`; nothing where it ends the connection.
fn answer(address: SocketAddr, client: ClientConnection) -> String {
    begin_of_answer(address, client, b"PING\r\n", 7)
}

/// The first line of what a server answers to a request of HTTP; nothing where it ends the connection.
fn status(address: SocketAddr, client: ClientConnection, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    begin_of_answer(address, client, request.as_bytes(), "HTTP/1.1 200 OK".len())
}

fn begin_of_answer(
    address: SocketAddr,
    mut client: ClientConnection,
    request: &[u8],
    len: usize,
) -> String {
    let mut socket = TcpStream::connect(address).expect("a connection");
    socket.set_read_timeout(Some(PATIENCE)).expect("an option");
    let mut stream = Stream::new(&mut client, &mut socket);
    let mut found = vec![0; len];
    let done = stream.write_all(request).and_then(|()| stream.read_exact(&mut found));
    match done {
        Ok(()) => String::from_utf8_lossy(&found).into_owned(),
        Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no answer: {error}"),
        Err(_) => String::new(),
    }
}

#[test]
fn clients_with_the_right_certificates_are_served() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (own, clients, forged) =
        (authority.sign("server"), authority.sign("client"), stranger.sign("client"));
    let trusted = authority.file("authority", &authority.issuer.pem());
    let service = Service::new(Db::in_memory(), Options { threads: 2, ..Options::default() });
    let stop = CancellationToken::new();
    let server = Server::new(Arc::new(service.expect("memory")), stop.clone());
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.expect("threads").block_on(async {
            let mut listeners = Listeners::default();
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            for authorities in [None, Some(&*trusted)] {
                let acceptor =
                    acceptor(&own.certificate, &own.key, authorities).expect("certificates");
                tell.send(listeners.tls(any, acceptor).expect("a port")).expect("a listener");
            }
            server.run(listeners).await.expect("it serves");
        });
    });
    let address = || told.recv_timeout(PATIENCE).expect("an address");
    let (open, closed) = (address(), address());
    assert_eq!(answer(open, authority.client(None)), "+PONG\r\n");
    assert_eq!(answer(open, stranger.client(None)), "", "the client trusts another authority");
    assert_eq!(answer(closed, authority.client(Some(&clients))), "+PONG\r\n");
    assert_eq!(answer(closed, authority.client(Some(&forged))), "", "of another authority");
    assert_eq!(answer(closed, authority.client(None)), "", "no certificate");
    // Bytes without TLS get no reply of the protocol, and others are served still.
    let mut plain = TcpStream::connect(open).expect("a connection");
    plain.set_read_timeout(Some(PATIENCE)).expect("an option");
    plain.write_all(b"PING\r\nPING\r\nPING\r\nPING\r\n").expect("it is sent");
    let mut found = Vec::new();
    // An alert, or a reset.
    let _ = plain.read_to_end(&mut found);
    assert!(!found.windows(4).any(|bytes| bytes == b"PONG"), "{found:?}");
    assert_eq!(answer(open, authority.client(None)), "+PONG\r\n");
    stop.cancel();
    thread.join().expect("the server ends");
}

#[test]
fn clients_of_http_with_the_right_certificates_are_served() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (own, clients, forged) =
        (authority.sign("server"), authority.sign("client"), stranger.sign("client"));
    let trusted = authority.file("authority", &authority.issuer.pem());
    let service = Service::new(Db::in_memory(), Options { threads: 2, ..Options::default() });
    let service = Arc::new(service.expect("memory"));
    let (ending, stop) = (CancellationToken::new(), CancellationToken::new());
    let (tell, told) = std::sync::mpsc::channel();
    let until = stop.clone();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.expect("threads").block_on(async {
            for authorities in [None, Some(&*trusted)] {
                let acceptor =
                    acceptor(&own.certificate, &own.key, authorities).expect("certificates");
                let any = SocketAddr::from(([127, 0, 0, 1], 0));
                let http = Http::listen(any).await.expect("a port").with_tls(acceptor);
                tell.send(http.address().expect("an address")).expect("a listener");
                tokio::spawn(http.run(Arc::clone(&service), ending.clone(), until.clone()));
            }
            until.cancelled().await;
        });
    });
    let address = || told.recv_timeout(PATIENCE).expect("an address");
    let (open, closed) = (address(), address());
    for path in ["/healthz", "/metrics", "/druid/v2/datasources"] {
        assert_eq!(status(open, authority.client(None), path), "HTTP/1.1 200 OK", "{path}");
        assert_eq!(status(closed, authority.client(Some(&clients)), path), "HTTP/1.1 200 OK");
        assert_eq!(status(closed, authority.client(Some(&forged)), path), "", "of another");
        assert_eq!(status(closed, authority.client(None), path), "", "no certificate");
    }
    assert_eq!(status(open, stranger.client(None), "/healthz"), "", "it trusts another authority");
    // A request without TLS gets no answer, and others are served still.
    let mut plain = TcpStream::connect(open).expect("a connection");
    plain.set_read_timeout(Some(PATIENCE)).expect("an option");
    plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is sent");
    let mut found = Vec::new();
    // An alert, or a reset.
    let _ = plain.read_to_end(&mut found);
    assert!(!found.windows(4).any(|bytes| bytes == b"HTTP"), "{found:?}");
    assert_eq!(status(open, authority.client(None), "/readyz"), "HTTP/1.1 200 OK");
    stop.cancel();
    thread.join().expect("the server ends");
}
