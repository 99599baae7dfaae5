//! A link arriving at intake: the one way by which anything enters the crawl.

use serde::{Deserialize, Serialize};

use crate::url::{CrawlUrl, UrlKey};

/// Where a link stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// Named by the user.
    Seed,
    /// `<a href>`.
    A,
    /// `<area href>`.
    Area,
    /// `<link href>` that is neither a style sheet nor an icon: next, alternate, canonical.
    Link,
    /// `<link rel=stylesheet href>`.
    Stylesheet,
    /// `<img src>`, icons, posters and other pictures.
    Img,
    /// One candidate of a `srcset`.
    Srcset,
    /// `<script src>`.
    Script,
    /// `<iframe src>` and `<frame src>`.
    Iframe,
    /// `<audio>`, `<video>`, `<source>`, `<embed>`, `<object>`.
    Media,
    /// `<form action>` whose method is GET.
    Form,
    /// `<meta http-equiv=refresh>` or a Refresh header.
    Refresh,
    /// `url(…)` or `@import` in CSS.
    Css,
    /// A Link header.
    Header,
    /// An entry of a sitemap.
    Sitemap,
    /// A sitemap named by robots.txt or by a sitemap index.
    SitemapFile,
    /// The target of an HTTP redirect.
    Redirect,
}

impl LinkKind {
    /// True for what a page needs to be shown but what is no page: followed only on request.
    pub const fn is_requisite(self) -> bool {
        matches!(
            self,
            Self::Stylesheet | Self::Img | Self::Srcset | Self::Script | Self::Media | Self::Css
        )
    }

    /// What a link of this kind makes of a URL at this depth.
    pub const fn role(self, depth: u16) -> Role {
        if self.is_requisite() {
            Role::Requisite
        } else {
            Role::Page(depth)
        }
    }

    /// The word for it in JSON and in WARC metadata.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Seed => "seed",
            Self::A => "a",
            Self::Area => "area",
            Self::Link => "link",
            Self::Stylesheet => "stylesheet",
            Self::Img => "img",
            Self::Srcset => "srcset",
            Self::Script => "script",
            Self::Iframe => "iframe",
            Self::Media => "media",
            Self::Form => "form",
            Self::Refresh => "refresh",
            Self::Css => "css",
            Self::Header => "header",
            Self::Sitemap => "sitemap",
            Self::SitemapFile => "sitemap_file",
            Self::Redirect => "redirect",
        }
    }
}

/// How a link bears on what is fetched. A URL can be linked in both ways, and from near and far; what counts is the best of
/// all its links, so that the order in which they are found does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// As a page, so many links away from a seed: its own links are followed.
    Page(u16),
    /// As something that a page needs to be shown: nothing is followed from it but what style sheets need.
    Requisite,
}

/// A URL on its way into the doc index, with what must travel with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Where it leads.
    pub url: CrawlUrl,
    /// Where it stood.
    pub kind: LinkKind,
    /// Links followed since the seed; a redirect does not add to it.
    pub depth: u16,
    /// 0 goes first. Breadth first within one priority.
    pub priority: u8,
    /// The page it was found on; none for a seed.
    pub via: Option<UrlKey>,
    /// The redirects that led here, oldest first, so that hops are counted and loops seen.
    pub chain: Vec<UrlKey>,
}
