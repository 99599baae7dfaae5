//! TLS: whom we believe, and what a failed handshake is called.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::error::SpiderError;
use crate::options::TlsOptions;

/// The client configuration: Mozilla's roots and those of the operator, HTTP/2 offered first.
///
/// The cryptography provider is named here and not installed for the process, because two libraries
/// that each install one stop the process.
pub(crate) fn client_config(options: &TlsOptions) -> Result<Arc<ClientConfig>, SpiderError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let roots = roots(&options.extra_roots_pem)?;
    let mut config = if options.insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth()
    } else {
        builder.with_root_certificates(roots).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn roots(extra_pem: &[u8]) -> Result<RootCertStore, SpiderError> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let mut found = false;
    for certificate in CertificateDer::pem_slice_iter(extra_pem) {
        let certificate = certificate.map_err(|error| SpiderError::Roots(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| SpiderError::Roots(error.to_string()))?;
        found = true;
    }
    if !found && !extra_pem.is_empty() {
        return Err(SpiderError::Roots("no certificate found".into()));
    }
    Ok(roots)
}

/// The phrase for a failed handshake.
pub(crate) fn reason(error: &std::io::Error) -> &'static str {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(Error::InvalidCertificate(problem)) => certificate_reason(problem),
        Some(Error::NoCertificatesPresented) => "no certificate",
        Some(Error::AlertReceived(_)) => "the server refused the handshake",
        Some(Error::PeerIncompatible(_)) => "no common version or cipher",
        Some(Error::InvalidMessage(_)) => "the server does not speak TLS",
        Some(_) => "handshake failed",
        None => "closed during the handshake",
    }
}

fn certificate_reason(problem: &CertificateError) -> &'static str {
    use CertificateError as C;
    match problem {
        C::Expired | C::ExpiredContext { .. } => "certificate expired",
        C::NotValidYet | C::NotValidYetContext { .. } => "certificate not valid yet",
        C::NotValidForName | C::NotValidForNameContext { .. } => "certificate for another name",
        C::UnknownIssuer => "certificate of an unknown issuer",
        C::Revoked => "certificate revoked",
        // The verifier has no variant of its own for a certificate that is its own authority.
        C::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "self-signed certificate"
        }
        C::BadEncoding => "certificate that cannot be read",
        C::BadSignature => "certificate with a wrong signature",
        _ => "bad certificate",
    }
}

/// Believes every certificate, but still checks that the server holds the key of the one it showed.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
