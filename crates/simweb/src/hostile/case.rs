//! A case: what its server does, and what a good crawler makes of it.

use std::net::Ipv4Addr;

use super::script::{Act, Ask, Script, status};

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// What a case is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word for it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

kinds! {
    /// Heads, lengths and chunks that are wrong.
    Framing = "framing",
    /// Servers that take their time.
    Slow = "slow",
    /// Answers that do not end.
    Endless = "endless",
    /// Redirects, and addresses that must not be asked.
    Redirects = "redirects",
    /// Content encodings, broken and explosive.
    Encodings = "encodings",
    /// Character sets that contradict each other.
    Charsets = "charsets",
    /// Documents that cost much to read.
    Html = "html",
    /// Sites without end.
    Traps = "traps",
    /// Forms of robots.txt.
    Robots = "robots",
    /// Retry-After in all its forms.
    Patience = "patience",
    /// Cookies that are forced on the client.
    Cookies = "cookies",
    /// Certificates and handshakes.
    Tls = "tls",
    /// Names that lead nowhere, or elsewhere.
    Dns = "dns",
    /// Connections that are used again.
    Reuse = "reuse",
}

/// How a case's host is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// By its address.
    Plain,
    /// By its name, which has this behaviour.
    Named,
    /// By its address over TLS, with this identity.
    Tls(Identity),
    /// Nobody listens there.
    Refused,
}

/// What a TLS server shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// A certificate of the known issuer for the address.
    Good,
    /// One that has expired.
    Expired,
    /// One that is not yet valid.
    Early,
    /// One for another name.
    OtherName,
    /// One that its owner signed.
    SelfSigned,
    /// One of an issuer that nobody knows.
    UnknownIssuer,
    /// A good one, and HTTP/2 is all that is spoken.
    Two,
    /// No TLS at all: the script has the bare connection.
    None,
}

/// One way to misbehave.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name, unique within its kind.
    pub name: &'static str,
    /// What it is about.
    pub kind: Kind,
    /// What the server does, in words.
    pub does: &'static str,
    /// What a good crawler records for its first URL: any of these words.
    pub expect: &'static [&'static str],
    /// Requests that a good crawler makes at most, robots.txt not counted.
    pub max_requests: u64,
    /// Bytes that it takes at most over four connections, what waits in the buffers of two kernels included.
    /// Of more connections, a quarter of it each.
    pub max_bytes: u64,
    /// A target that it must ask for as well.
    pub leads_to: Option<&'static str>,
    /// A target that it must not ask for.
    pub never: Option<&'static str>,
    /// True when only the crawler's patience ends it, so that short limits make it short.
    pub slow: bool,
    pub(crate) door: Door,
    pub(crate) script: Script,
    pub(crate) robots: Script,
    pub(crate) greet: Option<fn(u64) -> Vec<Act>>,
    pub(crate) number: u8,
}

/// The outcome classes, as crawlers of our house call them.
pub(crate) mod class {
    pub(crate) const SUCCESS: &str = "success";
    pub(crate) const EMPTY: &str = "success_empty";
    pub(crate) const TRUNCATED: &str = "truncated";
    pub(crate) const HTTP_ERROR: &str = "http_error";
    pub(crate) const FOLLOWED: &str = "redirect_followed";
    pub(crate) const REDIRECT_REFUSED: &str = "redirect_refused";
    pub(crate) const REDIRECT_LIMIT: &str = "redirect_limit";
    pub(crate) const DENIED_ROBOTS: &str = "denied_robots";
    pub(crate) const DENIED_POLICY: &str = "denied_policy";
    pub(crate) const DEFERRED: &str = "deferred";
    pub(crate) const CONNECT: &str = "failed_connect";
    pub(crate) const TIMEOUT: &str = "failed_timeout";
    pub(crate) const PROTOCOL: &str = "failed_protocol";
    pub(crate) const DECODE: &str = "failed_decode";
    pub(crate) const TLS: &str = "failed_tls";
    pub(crate) const DNS: &str = "failed_dns";
}

/// Two kernels keep this much on the way of four connections between programs that do not read: up to four
/// megabytes to send, and as much or more received. What is read without end is more than any of it.
const IN_FLIGHT: u64 = 48 << 20;

impl Case {
    /// A case with the usual budget: two attempts at one small answer.
    pub(crate) fn new(
        name: &'static str,
        does: &'static str,
        expect: &'static [&'static str],
        script: Script,
    ) -> Self {
        Self {
            name,
            kind: Kind::Framing,
            does,
            expect,
            max_requests: 4,
            max_bytes: IN_FLIGHT,
            leads_to: None,
            never: None,
            slow: false,
            door: Door::Plain,
            script,
            robots: no_robots,
            greet: None,
            number: 0,
        }
    }

    pub(crate) fn requests(mut self, most: u64) -> Self {
        self.max_requests = most;
        self
    }

    /// Only time bounds what comes: the visitor cannot tell what belongs to which of its requests.
    pub(crate) fn any_bytes(mut self) -> Self {
        self.max_bytes = u64::MAX;
        self
    }

    pub(crate) fn leads_to(mut self, target: &'static str) -> Self {
        self.leads_to = Some(target);
        self
    }

    pub(crate) fn never(mut self, target: &'static str) -> Self {
        self.never = Some(target);
        self
    }

    pub(crate) fn slow(mut self) -> Self {
        self.slow = true;
        self
    }

    pub(crate) fn door(mut self, door: Door) -> Self {
        self.door = door;
        self
    }

    pub(crate) fn robots(mut self, script: Script) -> Self {
        self.robots = script;
        self
    }

    /// What is done when a connection is accepted, by its number.
    pub(crate) fn greet(mut self, script: fn(u64) -> Vec<Act>) -> Self {
        self.greet = Some(script);
        self
    }

    /// The address of its host: the kind and the case in the last two octets.
    pub fn ip(&self) -> Ipv4Addr {
        Ipv4Addr::new(127, NETWORK, self.kind as u8, self.number)
    }

    /// The name of its host.
    pub(crate) fn host_name(&self) -> String {
        format!("{}.{ZONE}", self.name)
    }
}

/// The second octet of all hosts: the network to be allowed is 127.90.0.0/16.
pub(crate) const NETWORK: u8 = 90;

/// The zone of all names.
pub(crate) const ZONE: &str = "hostile.test";

fn no_robots(_: &Ask) -> Vec<Act> {
    status(404, "")
}
