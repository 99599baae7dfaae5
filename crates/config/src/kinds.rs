//! Keys and what their values must be; and which key was meant by a name that there is not.

use serde::de::DeserializeOwned;

/// A key as we write it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// The section; empty for the keys above all sections.
    pub(crate) section: &'static str,
    pub(crate) name: &'static str,
    /// Section and name.
    pub(crate) path: &'static str,
    /// What its value must be.
    pub(crate) expected: &'static str,
    pub(crate) fits: fn(&toml::Value) -> bool,
}

impl Key {
    pub(crate) const fn top<T: Kind>(name: &'static str) -> Self {
        Self {
            section: "",
            name,
            path: name,
            expected: T::EXPECTED,
            fits: fits::<T>,
        }
    }
}

/// What a value can be, in words.
pub(crate) trait Kind: DeserializeOwned {
    const EXPECTED: &'static str;
}

macro_rules! kinds {
    ($($type:ty: $words:literal,)*) => {
        $(impl Kind for $type {
            const EXPECTED: &'static str = $words;
        })*
    };
}

kinds! {
    bool: "true or false",
    u8: "a whole number from 0 to 255",
    u16: "a whole number from 0 to 65535",
    u32: "a whole number from 0 to 4294967295",
    u64: "a whole number, 0 or more",
    usize: "a whole number, 0 or more",
    f64: "a number",
    String: "a text in quotes",
    Vec<String>: "a list of texts in quotes, as in [\"…\", \"…\"]",
}

/// Whether a value is of a kind.
pub(crate) fn fits<T: Kind>(value: &toml::Value) -> bool {
    value.clone().try_into::<T>().is_ok()
}

/// The nearest of some names, if one is near at all.
pub(crate) fn near<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(char::is_ascii_alphanumeric);
        letters.collect::<String>().to_ascii_lowercase()
    };
    let meant = plain(written);
    let near = names
        .map(|name| (distance(&plain(name), &meant), name))
        .min();
    // Two letters of five are another word.
    let most = (meant.len() / 3).min(2);
    near.filter(|(distance, _)| *distance <= most)
        .map(|(_, name)| name)
}

/// How many letters must be put in, left out or changed (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (number, left) in one.bytes().enumerate() {
        let mut corner = number;
        let mut last = number + 1;
        for (right, place) in other.bytes().zip(row.iter_mut().skip(1)) {
            let here = (corner + usize::from(left != right))
                .min(last + 1)
                .min(*place + 1);
            corner = std::mem::replace(place, here);
            last = here;
        }
        if let Some(first) = row.first_mut() {
            *first = number + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}
