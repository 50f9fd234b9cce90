//! TLS with certificates that can be replaced while the server runs. New files are validated before they
//! replace the old ones; open connections are not affected.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

use crate::limits;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}: {error}", path.display())]
    File {
        path: PathBuf,
        #[source]
        error: std::io::Error,
    },
    #[error("{} contains no {what}", path.display())]
    Empty { path: PathBuf, what: &'static str },
    #[error("certificate and key are not usable: {0}")]
    Unusable(#[from] rustls::Error),
}

/// Certificate and key, read from files.
#[derive(Clone, Debug)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    config: Arc<RwLock<Arc<ServerConfig>>>,
}

impl Tls {
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let config = read(certificate, key)?;
        Ok(Self {
            certificate: certificate.to_path_buf(),
            key: key.to_path_buf(),
            config: Arc::new(RwLock::new(Arc::new(config))),
        })
    }

    /// Reads the files again. On an error the previous configuration stays.
    pub fn reload(&self) -> Result<(), Error> {
        let config = read(&self.certificate, &self.key)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        Ok(())
    }

    /// The files, to be watched for changes.
    pub fn files(&self) -> [&Path; 2] {
        [&self.certificate, &self.key]
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(config.clone())
    }
}

fn read(certificate: &Path, key: &Path) -> Result<ServerConfig, Error> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&bytes(certificate)?)
        .filter_map(Result::ok)
        .collect();
    if chain.is_empty() {
        return Err(Error::Empty {
            path: certificate.to_path_buf(),
            what: "certificate",
        });
    }
    let key_der = PrivateKeyDer::from_pem_slice(&bytes(key)?).map_err(|_| Error::Empty {
        path: key.to_path_buf(),
        what: "private key",
    })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key_der)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(limits::PEM_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|error| Error::File {
        path: path.to_path_buf(),
        error,
    })?;
    Ok(bytes)
}
