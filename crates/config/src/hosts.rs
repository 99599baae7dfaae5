//! Settings for single hosts and for domains, as written: `[host."www.example.org"]`, `[domain."example.org"]`.
//! What follows from them is in `rules.rs`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::kinds::{Key, Kind, fits};

/// Tables by the name of a host or domain.
pub(crate) type Named = BTreeMap<String, HostConfig>;

/// What is written about one host, or about all hosts of a domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostConfig {
    /// Requests per second; 0 means no limit.
    pub rate: Option<f64>,
    /// Requests at once.
    pub per_host: Option<u16>,
    /// obey or ignore.
    pub robots: Option<String>,
    /// Header lines of every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Credentials.
    pub auth: Option<AuthConfig>,
    /// How much is taken.
    pub limits: HostLimitsConfig,
    /// When a family of URLs is taken for endless.
    pub traps: HostTrapsConfig,
}

/// The keys of [`HostConfig`] that are no tables.
pub(crate) const PLAIN: [Key; 3] = [
    Key::top::<f64>("rate"),
    Key::top::<u16>("per_host"),
    Key::top::<String>("robots"),
];

/// Its tables.
pub(crate) const TABLES: [&str; 4] = ["headers", "auth", "limits", "traps"];

/// What can be laid over another of its kind, key by key.
trait Overlay {
    fn under(self, upper: Self) -> Self;
}

macro_rules! tables {
    ($($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$outer])*
            #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
            #[serde(deny_unknown_fields, default)]
            pub struct $name {
                $($(#[$inner])* pub $field: Option<$type>,)*
            }

            impl $name {
                pub(crate) const KEYS: &[Key] = &[$(Key {
                    section: "",
                    name: stringify!($field),
                    path: stringify!($field),
                    expected: <$type as Kind>::EXPECTED,
                    fits: fits::<$type>,
                },)*];

            }

            impl Overlay for $name {
                fn under(self, upper: Self) -> Self {
                    Self { $($field: upper.$field.or(self.$field),)* }
                }
            }
        )*
    };
}

tables! {
    /// Credentials: a user with a password, or a token.
    AuthConfig {
        /// The name for Basic.
        user: String,
        /// Its password.
        password: String,
        /// A file with the password.
        password_file: String,
        /// The token for Bearer.
        token: String,
        /// A file with the token.
        token_file: String,
        /// It is sent over http too.
        over_http: bool,
    }

    /// How much is taken from a host.
    HostLimitsConfig {
        /// Seconds to a TCP connection, and again to a finished TLS handshake.
        connect_timeout_s: f64,
        /// Seconds from the request to the end of the response head.
        header_timeout_s: f64,
        /// Seconds of silence inside a body.
        idle_timeout_s: f64,
        /// Seconds after which a fetch is over.
        total_timeout_s: f64,
        /// Bytes per second at which a large body may continue beyond the total time.
        min_body_rate: u64,
        /// Bytes of a body that are kept.
        max_body_bytes: usize,
        /// Bytes of a decoded body that are read for links.
        max_decoded_bytes: usize,
    }

    /// When a family of URLs of a host is taken for endless.
    HostTrapsConfig {
        /// False switches every rule off.
        enabled: bool,
        /// New URLs that pages may lead to when they say the same as twenty others.
        copies: u32,
        /// URLs of one path with parameters in combinations that repeat each other.
        combinations: u32,
        /// First year of calendars.
        first_year: u16,
        /// Last year of calendars, counted from now.
        years_ahead: u16,
    }
}

impl HostConfig {
    /// This with another laid over it, key by key and header by header.
    pub(crate) fn under(self, upper: Self) -> Self {
        let mut headers = self.headers;
        for (name, value) in upper.headers {
            headers.retain(|before, _| !before.eq_ignore_ascii_case(&name));
            headers.insert(name, value);
        }
        Self {
            rate: upper.rate.or(self.rate),
            per_host: upper.per_host.or(self.per_host),
            robots: upper.robots.or(self.robots),
            headers,
            // As a whole: the password of one user is not that of another.
            auth: upper.auth.or(self.auth),
            limits: self.limits.under(upper.limits),
            traps: self.traps.under(upper.traps),
        }
    }

    /// What of it may lie in a crawl directory: all but secrets. That somebody is to ask stays, so that a crawl without
    /// the secret is not taken for one that needs none.
    fn without_secrets(&self) -> Self {
        let auth = self.auth.clone().map(|auth| AuthConfig {
            password: None,
            token: None,
            ..auth
        });
        Self {
            auth,
            ..self.clone()
        }
    }
}

/// Tables with others laid over them.
pub(crate) fn under(mut lower: Named, upper: Named) -> Named {
    for (name, above) in upper {
        let below = lower.remove(&name).unwrap_or_default();
        lower.insert(name, below.under(above));
    }
    lower
}

/// Tables without secrets.
pub(crate) fn kept(named: &Named) -> Named {
    let kept = named.iter();
    kept.map(|(name, host)| (name.clone(), host.without_secrets()))
        .collect()
}
