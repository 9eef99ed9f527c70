//! TLS: certificates from files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds something else.
    #[error("{path} holds no {what} in PEM form: {cause}")]
    File {
        /// The file.
        path: PathBuf,
        /// The thing that it should hold.
        what: &'static str,
        /// The reason.
        cause: String,
    },
    /// The certificate and the key are refused.
    #[error("the certificate and the key cannot be used together: {0}")]
    Refused(#[from] tokio_rustls::rustls::Error),
    /// The certificates of authorities are refused.
    #[error("clients' certificates cannot be checked with {path}: {cause}")]
    Authorities {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: String,
    },
}

/// Makes ready to accept TLS with a certificate chain and its key. With `authorities`, a client
/// must have a certificate that one of them has signed.
///
/// # Errors
/// A file that is none, or what it holds is refused.
pub fn acceptor(
    certificate: &Path,
    key: &Path,
    authorities: Option<&Path>,
) -> Result<TlsAcceptor, TlsError> {
    let chain = certificates(certificate)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| TlsError::File {
        path: key.to_owned(),
        what: "private key",
        cause: error.to_string(),
    })?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let builder = match authorities {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let refused = |cause: String| TlsError::Authorities { path: path.to_owned(), cause };
            let mut roots = RootCertStore::empty();
            for authority in certificates(path)? {
                roots.add(authority).map_err(|error| refused(error.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = verifier.build().map_err(|error| refused(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    Ok(TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key)?)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let file = |cause: String| TlsError::File { path: path.to_owned(), what: "certificate", cause };
    let read = CertificateDer::pem_file_iter(path).map_err(|error| file(error.to_string()))?;
    let read: Result<Vec<_>, _> = read.collect();
    let chain = read.map_err(|error| file(error.to_string()))?;
    match chain.is_empty() {
        true => Err(file("it is empty".to_owned())),
        false => Ok(chain),
    }
}
