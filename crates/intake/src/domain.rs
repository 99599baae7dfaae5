//! Registered domains by the public suffix list.

/// The registered domain of a host name: `example.co.uk` for `www.example.co.uk`.
///
/// None for addresses, and for names that are themselves a public suffix or a single label. Under
/// a top-level domain that is not on the list, the last two labels are taken.
pub fn registered_domain(host: &str) -> Option<&str> {
    if is_address(host) {
        return None;
    }
    psl::domain_str(host)
}

/// The registered domain or, where there is none, the host itself: what "the same site" means for
/// scope and for budgets.
pub fn domain_or_host(host: &str) -> &str {
    registered_domain(host).unwrap_or(host)
}

/// A canonical host is an address when it has brackets or when its last label is all digits.
fn is_address(host: &str) -> bool {
    host.starts_with('[')
        || host
            .rsplit('.')
            .next()
            .is_some_and(|label| label.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_by_the_list() {
        for (host, domain) in [
            ("www.example.co.uk", Some("example.co.uk")),
            ("example.org", Some("example.org")),
            ("a.b.example.github.io", Some("example.github.io")),
            ("co.uk", None),
            ("localhost", None),
            ("x.wild.hostile.test", Some("hostile.test")),
            ("127.0.0.1", None),
            ("[::1]", None),
            ("www.xn--bcher-kva.example", Some("xn--bcher-kva.example")),
        ] {
            assert_eq!(registered_domain(host), domain, "{host}");
        }
        assert_eq!(domain_or_host("127.0.0.1"), "127.0.0.1");
        assert_eq!(domain_or_host("localhost"), "localhost");
        assert_eq!(domain_or_host("www.example.org"), "example.org");
    }
}
