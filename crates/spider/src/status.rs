//! Every HTTP status has a decided action: this table is the only place where one is decided.

/// What is to be done about a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Keep the document.
    Store,
    /// Go where Location points, if it points anywhere.
    Follow {
        /// True when the old URL is not coming back.
        permanent: bool,
    },
    /// Ask again later: the trouble is the server's and may pass.
    Retry,
    /// Asking again would bring the same answer.
    GiveUp,
    /// There is no such document, and the server says so.
    Gone,
    /// Not a final status: the peer does not speak HTTP as asked.
    Violation,
}

/// The action for a status.
///
/// | status | action |
/// |---|---|
/// | 1xx as a final answer | violation |
/// | 2xx, 304 | store |
/// | 301, 308 | follow, permanent |
/// | 302, 303, 307 | follow |
/// | 404, 410 | gone |
/// | 408, 421, 425, 429 | retry |
/// | 500, 502, 503, 504, 507, 509, 520–530 | retry |
/// | every other 3xx, 4xx, 5xx; 600 and above; below 100 | give up |
///
/// 304 answers a question with a condition, which the document kept from an earlier visit still
/// answers. 520–530 are a large proxy network's words for "the server behind me failed".
pub const fn action(status: u16) -> Action {
    match status {
        100..=199 => Action::Violation,
        200..=299 | 304 => Action::Store,
        301 | 308 => Action::Follow { permanent: true },
        302 | 303 | 307 => Action::Follow { permanent: false },
        404 | 410 => Action::Gone,
        408 | 421 | 425 | 429 => Action::Retry,
        500 | 502 | 503 | 504 | 507 | 509 | 520..=530 => Action::Retry,
        _ => Action::GiveUp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_status_has_its_action() {
        for (status, wanted) in [
            (0, Action::GiveUp),
            (101, Action::Violation),
            (200, Action::Store),
            (206, Action::Store),
            (299, Action::Store),
            (300, Action::GiveUp),
            (301, Action::Follow { permanent: true }),
            (302, Action::Follow { permanent: false }),
            (304, Action::Store),
            (306, Action::GiveUp),
            (308, Action::Follow { permanent: true }),
            (404, Action::Gone),
            (410, Action::Gone),
            (418, Action::GiveUp),
            (429, Action::Retry),
            (501, Action::GiveUp),
            (503, Action::Retry),
            (522, Action::Retry),
            (600, Action::GiveUp),
            (999, Action::GiveUp),
        ] {
            assert_eq!(action(status), wanted, "{status}");
        }
    }
}
