//! The words that texts, titles and paths are made of.
//!
//! Paths are judged by what they begin with, so no word here begins with one that robots.txt names
//! (`private`, `search`) or that `layout` uses for itself (`go`, `gone`, `img`, `sitemap`, `trap`).

use crate::rng::Rng;

/// A word in which the first ones of the list come more often, as in any language.
pub(crate) fn frequent(rng: &mut Rng) -> &'static str {
    let all = WORDS.len() as u32;
    let at = rng.below(all).min(rng.below(all)).min(rng.below(all));
    WORDS.get(at as usize).copied().unwrap_or("the")
}

/// A word fit for a path: one of the rarer, longer ones.
pub(crate) fn for_path(number: u64) -> &'static str {
    let nouns = WORDS.len() - FIRST_NOUN;
    WORDS
        .get(FIRST_NOUN + (number % nouns as u64) as usize)
        .copied()
        .unwrap_or("page")
}

const FIRST_NOUN: usize = 48;

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "the", "of", "and", "to", "a", "in", "is", "that", "it", "was", "for", "on", "with", "as", "his",
    "be", "at", "by", "had", "not", "are", "but", "from", "or", "have", "they", "which", "one", "were",
    "all", "their", "there", "been", "many", "some", "would", "other", "into", "has", "more", "two",
    "time", "could", "no", "make", "than", "first", "when",
    "water", "people", "number", "sound", "river", "garden", "market", "history", "letter", "mother",
    "answer", "country", "school", "father", "paper", "mountain", "north", "south", "harbour", "island",
    "morning", "winter", "summer", "autumn", "spring", "village", "window", "music", "science", "nature",
    "machine", "engine", "bridge", "railway", "station", "journey", "stranger", "museum", "library",
    "archive", "printer", "weaver", "spider", "thread", "orchard", "kitchen", "recipe", "bread", "butter",
    "pepper", "cinnamon", "coffee", "planet", "moon", "comet", "telescope", "physics", "chemistry",
    "biology", "theory", "measure", "experiment", "result", "method", "question", "problem", "proof",
    "language", "grammar", "poetry", "novel", "chapter", "author", "reader", "painting", "colour",
    "theatre", "orchestra", "violin", "piano", "singer", "concert", "football", "cricket", "running",
    "swimming", "climbing", "cycling", "victory", "season", "player", "doctor", "hospital", "medicine",
    "health", "disease", "vaccine", "politics", "election", "minister", "parliament", "council", "citizen",
    "economy", "trade", "industry", "factory", "worker", "union", "company", "product", "customer",
    "service", "price", "money", "bank", "insurance", "contract", "property", "building", "architect",
    "concrete", "timber", "glass", "iron", "copper", "silver", "crystal", "forest", "meadow", "desert",
    "valley", "glacier", "volcano", "climate", "weather", "storm", "thunder", "rainbow", "cloud",
    "horse", "rabbit", "sparrow", "eagle", "salmon", "whale", "butterfly", "beetle", "lichen", "fern",
    "software", "computer", "network", "database", "protocol", "keyboard", "memory",
    "processor", "algorithm", "compiler", "register", "packet", "address", "browser", "document",
];
