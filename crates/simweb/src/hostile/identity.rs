//! The certificates of the TLS cases, made anew for each run.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType,
    date_time_ymd,
};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::case::{Case, Door, Identity};
use crate::SimError;

type Issuer = CertifiedIssuer<'static, KeyPair>;

/// What each TLS host shows.
pub(crate) struct Identities {
    issuer_pem: String,
    acceptors: HashMap<Ipv4Addr, TlsAcceptor>,
}

impl Identities {
    pub(crate) fn new(cases: &[Case]) -> Result<Self, SimError> {
        let make = || -> Result<Self, Box<dyn std::error::Error>> {
            let known = issuer("the issuer of the hostile web")?;
            let unknown = issuer("an issuer that nobody knows")?;
            let mut acceptors = HashMap::new();
            for case in cases {
                if let Door::Tls(identity) = case.door
                    && identity != Identity::None
                {
                    let config = server_config(identity, case.ip(), &known, &unknown)?;
                    acceptors.insert(case.ip(), TlsAcceptor::from(Arc::new(config)));
                }
            }
            Ok(Self {
                issuer_pem: known.pem(),
                acceptors,
            })
        };
        make().map_err(|error| SimError::Certificates(error.to_string()))
    }

    /// The issuer to be trusted.
    pub(crate) fn issuer(&self) -> &str {
        &self.issuer_pem
    }

    pub(crate) fn acceptor(&self, ip: Ipv4Addr) -> Option<&TlsAcceptor> {
        self.acceptors.get(&ip)
    }
}

fn issuer(name: &str) -> Result<Issuer, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

fn server_config(
    identity: Identity,
    ip: Ipv4Addr,
    known: &Issuer,
    unknown: &Issuer,
) -> Result<ServerConfig, Box<dyn std::error::Error>> {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "a hostile host");
    params.subject_alt_names.push(match identity {
        Identity::OtherName => SanType::DnsName("somebody.else.test".try_into()?),
        _ => SanType::IpAddress(IpAddr::V4(ip)),
    });
    match identity {
        Identity::Expired => {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        }
        Identity::Early => params.not_before = date_time_ymd(4000, 1, 1),
        _ => {}
    }
    let key = KeyPair::generate()?;
    let certificate = match identity {
        Identity::SelfSigned => params.self_signed(&key)?,
        Identity::UnknownIssuer => params.signed_by(&key, unknown)?,
        _ => params.signed_by(&key, known)?,
    };
    let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    if identity == Identity::Two {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    Ok(config)
}
