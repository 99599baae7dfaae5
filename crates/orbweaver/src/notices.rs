//! What a run has to tell a person beyond its counts: said at once beside the progress line, and again in the summary.
//!
//! Anybody in the ring can add a sentence. It names what happened, its cause, and what to type to change it.

use std::sync::Mutex;

use crate::helm::lock;

/// Sentences that are kept; a run that has more to complain of has one cause for most of it.
const KEPT: usize = 20;

/// The sentences of one run, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Notices(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    /// Filled by `add`, up to `KEPT`, each sentence once.
    sentences: Vec<String>,
    /// How many of them were shown while the run went on.
    shown: usize,
    /// Sentences for which there was no room.
    more: u64,
}

impl Notices {
    /// With these to begin with.
    pub(crate) fn of(sentences: Vec<String>) -> Self {
        let notices = Self::default();
        sentences
            .into_iter()
            .for_each(|sentence| notices.add(sentence));
        notices
    }

    /// Adds a sentence, lower case and without a full stop. The same sentence is kept once.
    pub(crate) fn add(&self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        let mut book = lock(&self.0);
        if book.sentences.contains(&sentence) {
            return;
        }
        match book.sentences.len() < KEPT {
            true => book.sentences.push(sentence),
            false => book.more += 1,
        }
    }

    /// Takes a sentence back that is not true any more.
    pub(crate) fn withdraw(&self, sentence: &str) {
        let mut book = lock(&self.0);
        if let Some(place) = book.sentences.iter().position(|known| known == sentence) {
            book.sentences.remove(place);
            book.shown -= usize::from(place < book.shown);
        }
    }

    /// Those that have come since the last call.
    pub(crate) fn news(&self) -> Vec<String> {
        let mut book = lock(&self.0);
        let news = book.sentences.iter().skip(book.shown).cloned().collect();
        book.shown = book.sentences.len();
        news
    }

    /// All of them, for the summary.
    pub(crate) fn all(&self) -> Vec<String> {
        let book = lock(&self.0);
        let mut all = book.sentences.clone();
        if book.more > 0 {
            all.push(format!("and {} more like these", book.more));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_once_and_not_too_many() {
        let notices = Notices::default();
        notices.add("one");
        notices.add("two");
        notices.add("one");
        assert_eq!(notices.news(), ["one", "two"]);
        for n in 0..100 {
            notices.add(format!("number {n}"));
        }
        assert_eq!(notices.news().len(), KEPT - 2);
        assert_eq!(notices.news(), [""; 0]);
        let all = notices.all();
        assert_eq!(all.len(), KEPT + 1);
        assert_eq!(all.last().unwrap(), "and 82 more like these");
    }
}
