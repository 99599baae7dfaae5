//! The shared secret, and the TLS that two who hold it speak.
//!
//! From the secret both sides derive the same Ed25519 key pair for a service (HKDF-SHA256, the service in
//! the info string). Each shows the public key (RFC 7250, no certificates), proves that it has the private
//! one, and accepts exactly that public key. So there is nothing to issue, renew or revoke: who has the
//! secret is in, and TLS 1.3 keeps what was said before a secret leaks unreadable.

use std::fmt;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use ring::hkdf;
use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as provider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};

use crate::error::{MIN_KEY, WireError};

/// Line ends that may be among the 32 bytes: more than four at the end of random ones come once in 2³⁵ keys, and the
/// 224 bits before them are enough.
const MAX_ENDS: usize = 4;

/// A secret is a few dozen bytes; what is larger was named by mistake.
const MAX_KEY: u64 = 64 << 10;

/// An Ed25519 private key in PKCS #8 (RFC 8410, section 7) is this and then the 32 bytes of its seed.
const PKCS8: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// A secret that two daemons share.
#[derive(Clone)]
pub struct Key(Arc<[u8]>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// Reads a key file. Nobody but its owner may be able to read or write it.
    pub fn read(path: &Path) -> Result<Self, WireError> {
        let wrong = |why: String| WireError::KeyFile {
            path: path.to_path_buf(),
            why,
        };
        let mut file = std::fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
        let about = file.metadata().map_err(|error| wrong(error.to_string()))?;
        if !about.is_file() {
            return Err(wrong("it is not a file".into()));
        }
        let mode = about.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let why = format!("others may read or write it (mode {mode:o}); run `chmod 600` on it");
            return Err(wrong(why));
        }
        let mut secret = Vec::new();
        (&mut file)
            .take(MAX_KEY + 1)
            .read_to_end(&mut secret)
            .map_err(|error| wrong(error.to_string()))?;
        if secret.len() as u64 > MAX_KEY {
            return Err(wrong(format!("it is larger than {MAX_KEY} bytes")));
        }
        Self::new(&secret)
    }

    /// Takes a secret. Line ends at its end do not count, for editors add them; but random bytes may end in one too, and
    /// 32 of them are a key all the same.
    pub fn new(secret: &[u8]) -> Result<Self, WireError> {
        let end = secret
            .iter()
            .rposition(|byte| !matches!(byte, b'\r' | b'\n'))
            .map_or(0, |last| last + 1);
        let kept = secret.get(..end).unwrap_or_default();
        if secret.len() < MIN_KEY || kept.len() + MAX_ENDS < MIN_KEY {
            return Err(WireError::ShortKey);
        }
        Ok(Self(kept.into()))
    }

    /// Both halves of a service's TLS.
    pub(super) fn tls(
        &self,
        service: &str,
    ) -> Result<(Arc<ServerConfig>, Arc<ClientConfig>), WireError> {
        let crypto = Arc::new(provider::default_provider());
        let own = self.pair(service)?;
        let peer = Arc::new(Peer {
            public: own.cert.clone(),
            crypto: Arc::clone(&crypto),
        });
        let own = Arc::new(own);
        let protocol = format!("orbweaver-{service}/1").into_bytes();
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&crypto))
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(Arc::clone(&peer) as _)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(
                Arc::clone(&own),
            )));
        server.alpn_protocols = vec![protocol.clone()];
        // Connections live long; a ticket would only be a second way in.
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_provider(crypto)
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(peer)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own)));
        client.alpn_protocols = vec![protocol];
        client.resumption = rustls::client::Resumption::disabled();
        client.enable_sni = false;
        Ok((Arc::new(server), Arc::new(client)))
    }

    fn pair(&self, service: &str) -> Result<CertifiedKey, WireError> {
        let fault = |what: &str| WireError::Tls(Error::General(what.into()));
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"orbweaver wire 1");
        let info = [service.as_bytes()];
        let mut seed = [0; 32];
        salt.extract(&self.0)
            .expand(&info, hkdf::HKDF_SHA256)
            .and_then(|derived| derived.fill(&mut seed))
            .map_err(|_| fault("the key could not be derived"))?;
        let private = [PKCS8.as_slice(), &seed].concat();
        let private = provider::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(private))?;
        let public = private.public_key().ok_or_else(|| fault("no public key"))?;
        let shown = CertificateDer::from(public.to_vec());
        Ok(CertifiedKey::new(vec![shown], private))
    }
}

/// Accepts one public key, its own.
#[derive(Debug)]
struct Peer {
    public: Vec<CertificateDer<'static>>,
    crypto: Arc<CryptoProvider>,
}

impl Peer {
    fn recognise(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        let known = self.public.iter().any(|public| public == shown);
        known
            .then_some(())
            .ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))
    }

    fn verify(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let public = SubjectPublicKeyInfoDer::from(shown.as_ref());
        let algorithms = &self.crypto.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &public, signed, algorithms)
    }
}

/// Only TLS 1.3 is spoken here, so nothing of TLS 1.2 is ever verified.
fn too_old() -> Error {
    Error::PeerIncompatible(rustls::PeerIncompatible::Tls12NotOfferedOrEnabled)
}

impl ServerCertVerifier for Peer {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.recognise(shown)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _shown: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(too_old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Peer {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.recognise(shown)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _shown: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(too_old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
