//! TLS: good and bad certificates, and peers that speak something else.

use std::net::SocketAddr;
use std::sync::Arc;

use orbweaver_model::OutcomeClass as C;
use orbweaver_spider::{Spider, SpiderError, SpiderOptions};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType,
    date_time_ymd,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::server::{Act, LOCAL, Site, body, class, clock, fetch, ok, options, spider};

pub(crate) type Ca = CertifiedIssuer<'static, KeyPair>;

pub(crate) fn ca() -> Ca {
    issuer("an issuer that is known")
}

fn issuer(name: &str) -> Ca {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.subject_alt_names.push(SanType::IpAddress(LOCAL));
    params
}

pub(crate) fn server_config(ca: &Ca, params: &CertificateParams, alpn: &[&str]) -> ServerConfig {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, ca).unwrap();
    config(certificate.der().clone(), &key, alpn)
}

fn config(
    certificate: rustls::pki_types::CertificateDer<'static>,
    key: &KeyPair,
    alpn: &[&str],
) -> ServerConfig {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

/// An HTTP/1 server over TLS that answers every request with its number.
async fn serve(config: ServerConfig) -> SocketAddr {
    let listener = TcpListener::bind((LOCAL, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(tcp).await else {
                continue;
            };
            tokio::spawn(async move {
                for n in 0.. {
                    let mut request = Vec::new();
                    while !request.ends_with(b"\r\n\r\n") {
                        match stream.read_u8().await {
                            Ok(byte) => request.push(byte),
                            Err(_) => return,
                        }
                    }
                    if stream.write_all(&ok(&format!("answer {n}"))).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

pub(crate) fn trusting(ca: &Ca) -> SpiderOptions {
    let mut options = options();
    options.tls.extra_roots_pem = ca.pem().into_bytes();
    options
}

#[tokio::test]
async fn a_certificate_of_a_known_issuer_is_believed() {
    let ca = ca();
    let address = serve(server_config(&ca, &params("good.example"), &["http/1.1"])).await;
    let spider = spider(trusting(&ca));
    let port = address.port();
    // By name, by name with its final dot, by address; a connection is used again.
    for (host, wanted) in [
        ("good.example", "answer 0"),
        ("good.example", "answer 1"),
        ("good.example.", "answer 0"),
        ("127.0.0.1", "answer 0"),
    ] {
        let result = fetch(&spider, &format!("https://{host}:{port}/")).await;
        assert_eq!(
            class(&result),
            C::Success,
            "{host}: {}",
            result.outcome.reason
        );
        assert_eq!(body(&result), wanted.as_bytes(), "{host}");
        // TLS adds to what the socket carries.
        assert!(result.wire_bytes > ok(wanted).len() as u64, "{host}");
    }
}

#[tokio::test]
async fn bad_certificates_are_refused_unless_told_otherwise() {
    let ca = ca();
    let mut expired = params("good.example");
    expired.not_before = date_time_ymd(2000, 1, 1);
    expired.not_after = date_time_ymd(2001, 1, 1);
    let key = KeyPair::generate().unwrap();
    let self_signed = params("good.example").self_signed(&key).unwrap();
    let mut elsewhere = CertificateParams::new(vec!["other.example".to_owned()]).unwrap();
    elsewhere.is_ca = IsCa::NoCa;
    for (config, reason) in [
        (server_config(&ca, &expired, &[]), "certificate expired"),
        (
            server_config(&ca, &elsewhere, &[]),
            "certificate for another name",
        ),
        (
            config(self_signed.der().clone(), &key, &[]),
            "certificate of an unknown issuer",
        ),
        (
            server_config(&issuer("somebody else"), &params("good.example"), &[]),
            "certificate of an unknown issuer",
        ),
    ] {
        let url = format!("https://good.example:{}/", serve(config).await.port());
        let result = fetch(&spider(trusting(&ca)), &url).await;
        assert_eq!(class(&result), C::FailedTls, "{reason}");
        assert_eq!(result.outcome.reason, reason);
        assert_eq!((result.sent, result.connected), (None, Some(LOCAL)));
        let mut insecure = trusting(&ca);
        insecure.tls.insecure = true;
        let result = fetch(&spider(insecure), &url).await;
        assert_eq!(class(&result), C::Success, "{reason}");
    }
}

#[tokio::test]
async fn peers_that_speak_no_tls() {
    for (script, reason) in [
        (
            vec![
                Act::Send(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
                Act::Hang,
            ],
            "the server does not speak TLS",
        ),
        (
            vec![Act::Send(vec![0x5a; 16 << 10]), Act::Hang],
            "the server does not speak TLS",
        ),
        (vec![], "closed during the handshake"),
    ] {
        let site = Site::start(vec![script]).await;
        let url = format!("https://{}/", site.address);
        let result = fetch(&spider(options()), &url).await;
        assert_eq!(
            (class(&result), &*result.outcome.reason),
            (C::FailedTls, reason)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_handshake_is_a_timeout() {
    let site = Site::start(vec![vec![Act::Hang]]).await;
    let url = format!("https://{}/", site.address);
    let result = fetch(&spider(options()), &url).await;
    assert_eq!(class(&result), C::FailedTimeout);
}

#[test]
fn unusable_options_are_refused() {
    let mut bad_agent = options();
    bad_agent.user_agent = "crawler\r\nX: y".into();
    assert!(matches!(
        Spider::new(bad_agent, clock()),
        Err(SpiderError::UserAgent)
    ));
    for pem in [
        "no certificates",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let mut bad_roots = options();
        bad_roots.tls.extra_roots_pem = pem.into();
        assert!(
            matches!(Spider::new(bad_roots, clock()), Err(SpiderError::Roots(_))),
            "{pem}"
        );
    }
}

#[tokio::test]
async fn a_certificate_that_the_operator_names_is_believed_of_its_server() {
    let named = |pem: String| {
        let mut options = options();
        options.tls.extra_roots_pem = pem.into_bytes();
        spider(options)
    };
    // Made in a minute: it signed itself, and says that it is an authority.
    let mut own = params("good.example");
    own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // And one that an authority signed whom nobody knows.
    let ca = issuer("in the cellar");
    let mut old = own.clone();
    old.not_before = date_time_ymd(2000, 1, 1);
    old.not_after = date_time_ymd(2001, 1, 1);
    let key = KeyPair::generate().unwrap();
    let signed = |params: &CertificateParams| params.self_signed(&key).unwrap();
    let by_ca = params("good.example").signed_by(&key, &ca).unwrap();
    for (certificate, host, wanted) in [
        (signed(&params("good.example")), "good.example", "success"),
        (signed(&own), "good.example", "success"),
        (by_ca, "good.example", "success"),
        (
            signed(&own),
            "other.example",
            "certificate for another name",
        ),
        (signed(&old), "good.example", "certificate expired"),
    ] {
        let spider = named(certificate.pem());
        let address = serve(config(certificate.der().clone(), &key, &[])).await;
        let result = fetch(&spider, &format!("https://{host}:{}/", address.port())).await;
        let said = match class(&result) {
            C::Success => "success",
            _ => &result.outcome.reason,
        };
        assert_eq!(said, wanted);
        // Somebody else's is not believed with it.
        let other = serve(config(signed(&own).der().clone(), &key, &[])).await;
        let strict = named(self::ca().pem());
        let result = fetch(&strict, &format!("https://good.example:{}/", other.port())).await;
        assert_eq!(class(&result), C::FailedTls);
    }
}
