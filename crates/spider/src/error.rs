//! What can stop a spider from being built. A failed fetch is not an error but an `Outcome`.

/// Why a `Spider` could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SpiderError {
    /// The user agent cannot stand in a header. Use visible ASCII characters only.
    #[error(
        "the user agent has characters that are not allowed in a header; use printable ASCII only"
    )]
    UserAgent,
    /// A further root certificate could not be read. Give a file with certificates in PEM form.
    #[error("the extra root certificates are not usable: {0}; give a file with PEM certificates")]
    Roots(String),
    /// The TLS library refused its own configuration. This is a fault of the build: report it.
    #[error("TLS could not be set up: {0}")]
    Tls(#[from] rustls::Error),
}
