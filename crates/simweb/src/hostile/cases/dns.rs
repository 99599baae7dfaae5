//! Names that lead nowhere, or elsewhere. What the name server does follows from the name: `names` has
//! the other half of these cases.

use crate::hostile::case::{Case, Door, class::*};
use crate::hostile::script::{Act, Ask, link, page};

fn hello(ask: &Ask) -> Vec<Act> {
    match ask.target.as_str() {
        "/" => page(link("/next")),
        _ => page("hello"),
    }
}

pub(super) fn cases() -> Vec<Case> {
    let case = |name, does, expect| Case::new(name, does, expect, hello).door(Door::Named);
    vec![
        case("plain", "one address", &[SUCCESS]).leads_to("/next"),
        case("ttl-zero", "an answer for one use", &[SUCCESS]).leads_to("/next"),
        case("many", "sixty addresses", &[SUCCESS]).leads_to("/next"),
        case("mixed", "a private address before a good one", &[SUCCESS]).leads_to("/next"),
        case("alias", "an alias", &[SUCCESS, DNS]),
        case("private", "only private addresses", &[DENIED_POLICY]).requests(0),
        case("loopback", "127.0.0.1", &[DENIED_POLICY]).requests(0),
        case("mapped", "127.0.0.1 as an IPv6 address", &[DENIED_POLICY]).requests(0),
        case(
            "rebinding",
            "a good address once, then 127.0.0.1",
            &[SUCCESS, DENIED_POLICY],
        ),
        case("nxdomain", "no such name", &[DNS]).requests(0),
        case("empty", "a name without an address", &[DNS]).requests(0),
        case("servfail", "the server's failure", &[DNS]).requests(0),
        case("refused", "a refusal", &[DNS]).requests(0),
        case("noise", "noise in place of an answer", &[DNS])
            .requests(0)
            .slow(),
        case("silence", "no answer", &[DNS]).requests(0).slow(),
        case("other-id", "the answer to another question", &[DNS])
            .requests(0)
            .slow(),
        case("alias-loop", "an alias of itself", &[DNS]).requests(0),
        case(
            "cut",
            "an answer marked as cut, and no other way to ask",
            &[DNS, SUCCESS],
        ),
    ]
}
