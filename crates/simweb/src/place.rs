//! What can be asked for on the simulated web: the words that its layout, its traps and its answers share.

/// One sitemap file of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SitemapFile {
    /// All pages, as XML.
    Plain,
    /// All pages, as a gzip file.
    Zipped,
    /// A list of parts.
    Index,
    /// A thousand pages, as a gzip file.
    Part(u32),
}

/// One thing on a host that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    /// A page; 0 is the root.
    Page(u32),
    /// A redirect that belongs to a page.
    Go(u32),
    /// The second redirect of a chain that belongs to a page.
    Hop(u32),
    /// A page that is linked and is not there.
    Broken(u32),
    /// A page that is linked and disallowed.
    Private(u32),
    /// A page under the other name of its host, which redirects to it.
    Away(u32),
    /// An honest page of a trap.
    Good(u32),
    /// Any other page of a trap; which one, only its path says.
    Lure,
    Robots,
    Sitemap(SitemapFile),
    Style,
    Logo,
}

/// A host and something on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) host: u32,
    pub(crate) what: What,
}

/// Appends texts, a number and a text, without the machinery of formatting.
pub(crate) fn put(out: &mut Vec<u8>, before: &[&str], number: u32, after: &str) {
    for text in before {
        out.extend_from_slice(text.as_bytes());
    }
    put_number(out, number.into());
    out.extend_from_slice(after.as_bytes());
}

/// Appends a decimal number.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    let start = out.len();
    loop {
        out.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    if let Some(digits) = out.get_mut(start..) {
        digits.reverse();
    }
}
