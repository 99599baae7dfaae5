//! The shapes of honest sites that real ones have and a random graph has not, by name.

use serde::{Deserialize, Serialize};

/// One shape of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Ten pages of an index, each with 250 links to places in each of 300 pages.
    Fragments,
    /// Six hundred goods with five words each in a frame of 150, on thirty lists.
    Catalogue,
    /// Fifteen hundred pictures, each on a page without a word.
    Gallery,
    /// Lists of goods for every choice of values for four filters.
    Facets,
    /// Three thousand pages of twelve words in a frame of 400, each of which links to the next.
    Chain,
    /// A tree of a thousand bare folders, nine deep, whose names come again on every level.
    Folders,
    /// A site with two names, one of which redirects to the other, with links to both.
    Apex,
    /// Four sites that link to each other and are seeds, all of them.
    Seeds,
}

impl Shape {
    /// All there are.
    pub const ALL: [Self; 8] = [
        Self::Fragments,
        Self::Catalogue,
        Self::Gallery,
        Self::Facets,
        Self::Chain,
        Self::Folders,
        Self::Apex,
        Self::Seeds,
    ];

    /// Its name, as in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fragments => "fragments",
            Self::Catalogue => "catalogue",
            Self::Gallery => "gallery",
            Self::Facets => "facets",
            Self::Chain => "chain",
            Self::Folders => "folders",
            Self::Apex => "apex",
            Self::Seeds => "seeds",
        }
    }

    /// The shape with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.name() == name)
    }

    /// How many hosts it has.
    pub(crate) const fn hosts(self) -> u32 {
        match self {
            Self::Apex => 2,
            Self::Seeds => 4,
            _ => 1,
        }
    }
}
