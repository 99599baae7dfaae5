//! Every limit on bytes, time and counts that come from outside, in one place.

use std::time::Duration;

/// How much of anything the crawler takes from a server. `Default` is the only place these values live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time to a TCP connection, and again to a finished TLS handshake.
    pub connect_timeout: Duration,
    /// Time from the written request to the end of the response head; the whole time unless set.
    pub header_timeout: Duration,
    /// Longest silence inside a body; the whole time unless set.
    pub idle_timeout: Duration,
    /// Hard end of a fetch, connection included (Timeout_Req).
    pub total_timeout: Duration,
    /// Bytes of all heads of one response together, interim ones included.
    pub max_header_bytes: usize,
    /// Header lines of one head.
    pub max_headers: usize,
    /// Bytes of a body as it comes over the wire, and as it is archived (Max_Doc_Size).
    pub max_body_bytes: usize,
    /// Bytes of a body after content decoding that are read for links.
    pub max_decoded_bytes: usize,
    /// Bytes per second at which a body larger than a mebibyte may go on beyond `total_timeout`; 0 for never.
    pub min_body_rate: u64,
    /// Stacked content encodings.
    pub max_encodings: usize,
    /// Redirect hops from the first URL of a chain.
    pub max_redirects: usize,
    /// Bytes of a robots.txt that are read; RFC 9309 asks for at least 500 KiB.
    pub robots_max_bytes: usize,
    /// Redirect hops for a robots.txt; RFC 9309 asks for at least five.
    pub robots_max_redirects: usize,
    /// Bytes of a URL.
    pub max_url_bytes: usize,
    /// Open elements that a page reader keeps track of.
    pub max_nesting: usize,
    /// Links taken from one page.
    pub max_links_per_page: usize,
    /// Path segments of a URL.
    pub max_path_depth: usize,
    /// Longest wait that a server can impose with Retry-After.
    pub retry_after_cap: Duration,
    /// Longest Crawl-delay that is obeyed as written; a longer one counts as this.
    pub crawl_delay_cap: Duration,
    /// URLs taken from one sitemap; the sitemap protocol allows 50,000.
    pub max_sitemap_urls: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            header_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(30),
            total_timeout: Duration::from_secs(30),
            max_header_bytes: 64 << 10,
            max_headers: 256,
            max_body_bytes: 1 << 30,
            max_decoded_bytes: 8 << 20,
            min_body_rate: 128 << 10,
            max_encodings: 4,
            max_redirects: 10,
            robots_max_bytes: 500 << 10,
            robots_max_redirects: 5,
            max_url_bytes: 8 << 10,
            max_nesting: 512,
            max_links_per_page: 10_000,
            max_path_depth: 64,
            retry_after_cap: Duration::from_secs(86_400),
            crawl_delay_cap: Duration::from_secs(300),
            max_sitemap_urls: 50_000,
        }
    }
}

impl Limits {
    /// These limits with another time for a whole fetch. A server may use all of it before its first byte and between
    /// two: whoever asks for a minute is not to be told after ten seconds that nothing came. Only a connection that
    /// cannot be made ends earlier, for it ends like that most of the time.
    pub fn with_total_timeout(self, total: Duration) -> Self {
        Self {
            connect_timeout: self.connect_timeout.min(total),
            header_timeout: total,
            idle_timeout: total,
            total_timeout: total,
            ..self
        }
    }
}
