//! A connection to a server.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::address::Socket;
use super::link::{Cancelled, Link, Received};

/// How long a server may take to accept a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 16;

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct Remote {
    stream: Stream,
    buffer: Box<[u8]>,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    Unix(UnixStream),
}

/// Certificates that are trusted: of a file, or else those of the system.
///
/// # Errors
/// Without any that can be read.
pub(crate) fn trusted(file: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => {
            let unread = |error| format!("{} cannot be read: {error}", path.display());
            for certificate in CertificateDer::pem_file_iter(path).map_err(unread)? {
                let refused = |error| format!("{} cannot be used: {error}", path.display());
                roots.add(certificate.map_err(unread)?).map_err(refused)?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err("there is no certificate to trust: name a file with --cacert".to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

impl Remote {
    /// Connects to a server; over TLS if there are certificates to trust.
    ///
    /// # Errors
    /// Those of the system, and of TLS.
    pub(crate) fn connect(socket: &Socket, tls: Option<&Arc<ClientConfig>>) -> io::Result<Remote> {
        let stream = match socket {
            Socket::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
            Socket::Tcp { host, port } | Socket::Tls { host, port } => {
                let tcp = connect(host, *port)?;
                // A request goes out at once.
                tcp.set_nodelay(true)?;
                match tls {
                    None => Stream::Tcp(tcp),
                    Some(config) => {
                        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                        let client = ClientConnection::new(Arc::clone(config), name);
                        let client = client.map_err(io::Error::other)?;
                        Stream::Tls(Box::new(StreamOwned::new(client, tcp)))
                    }
                }
            }
        };
        Ok(Remote { stream, buffer: vec![0; READ_BYTES].into_boxed_slice() })
    }
}

fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Link for Remote {
    fn send(&mut self, request: &[u8]) -> io::Result<()> {
        let stream: &mut dyn Write = match &mut self.stream {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(None)?;
                stream
            }
            Stream::Tls(stream) => {
                // The first write waits for the server's half of the handshake.
                stream.sock.set_read_timeout(None)?;
                stream
            }
            Stream::Unix(stream) => stream,
        };
        stream.write_all(request)?;
        stream.flush()
    }

    fn receive(&mut self, into: &mut Vec<u8>, patience: Duration) -> io::Result<Received> {
        let patience = Some(patience.max(Duration::from_millis(1)));
        let read = match &mut self.stream {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(patience)?;
                stream.read(&mut self.buffer)
            }
            Stream::Tls(stream) => {
                stream.sock.set_read_timeout(patience)?;
                stream.read(&mut self.buffer)
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(patience)?;
                stream.read(&mut self.buffer)
            }
        };
        match read {
            Ok(0) => Ok(Received::Ended),
            Ok(read) => {
                into.extend_from_slice(&self.buffer[..read]);
                Ok(Received::Some)
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => Ok(Received::None),
                io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
                    Ok(Received::Ended)
                }
                _ => Err(error),
            },
        }
    }

    fn cancel(&mut self) -> Cancelled {
        // A server stops the command of a client that goes.
        Cancelled::Silent
    }
}
