//! TLS: whom we believe, and what a failed handshake is called.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
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
    let (roots, named) = roots(&options.extra_roots_pem)?;
    let trust = if options.insecure {
        Trust::Anyone
    } else {
        let usual =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let usual = usual.build();
        let usual = usual.map_err(|error| SpiderError::Roots(error.to_string()))?;
        Trust::Known { usual, named }
    };
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { trust, provider }))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The roots to believe, and the certificates of the operator among them.
fn roots(extra_pem: &[u8]) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), SpiderError> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let mut named = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(extra_pem) {
        let certificate = certificate.map_err(|error| SpiderError::Roots(error.to_string()))?;
        roots
            .add(certificate.clone())
            .map_err(|error| SpiderError::Roots(error.to_string()))?;
        named.push(certificate);
    }
    if named.is_empty() && !extra_pem.is_empty() {
        return Err(SpiderError::Roots("no certificate found".into()));
    }
    Ok((roots, named))
}

/// Whose certificates are believed. That a server holds the key of the certificate it shows is checked in either case.
#[derive(Debug)]
enum Trust {
    /// Everybody's.
    Anyone,
    /// Those that an authority answers for, and those of the operator, as curl and OpenSSL do: a certificate that
    /// signed itself, as one makes them in a minute, says that it is an authority, and as such must not be a server's by
    /// the letter. Its time, its name and its key are checked as with any other.
    Known {
        usual: Arc<WebPkiServerVerifier>,
        named: Vec<CertificateDer<'static>>,
    },
}

#[derive(Debug)]
struct Verifier {
    trust: Trust,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Trust::Known { usual, named } = &self.trust else {
            return Ok(ServerCertVerified::assertion());
        };
        let verdict =
            usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        // Both complaints come after the certificate's time was found to be right.
        let of_its_issuer = match &verdict {
            Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => true,
            Err(Error::InvalidCertificate(CertificateError::Other(other))) => {
                format!("{other:?}").contains("CaUsedAsEndEntity")
            }
            _ => false,
        };
        if !of_its_issuer || !named.iter().any(|named| named == end_entity) {
            return verdict;
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        (self.provider.signature_verification_algorithms).supported_schemes()
    }
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
        C::BadEncoding => "malformed certificate",
        C::BadSignature => "certificate with a wrong signature",
        _ => "bad certificate",
    }
}
