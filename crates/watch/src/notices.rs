//! Messages of a run for the user beyond its counts: shown at once beside the progress line, and again in the summary.
//!
//! Anybody in the ring can add a sentence. It names what happened, its cause, and what to type to change it.

use std::sync::{Mutex, PoisonError};

/// Sentences that are kept; a run that has more to complain of has one cause for most of it.
const KEPT: usize = 20;

/// The sentences of one run, in the order in which they came.
#[derive(Debug, Default)]
pub struct Notices(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    /// Filled by `add`, up to `KEPT`, each sentence once.
    sentences: Vec<String>,
    /// How many of them were shown while the run went on.
    shown: usize,
    /// Sentences for which there was no room.
    more: u64,
    /// Said while the run goes on, and not in the summary. Filled by `say`, up to `KEPT`; emptied by `news`.
    passing: Vec<String>,
}

impl Notices {
    /// With these to begin with.
    pub fn of(sentences: Vec<String>) -> Self {
        let notices = Self::default();
        sentences
            .into_iter()
            .for_each(|sentence| notices.add(sentence));
        notices
    }

    /// Adds a sentence, lower case and without a full stop. The same sentence is kept once.
    pub fn add(&self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.sentences.contains(&sentence) {
            return;
        }
        match said.sentences.len() < KEPT {
            true => said.sentences.push(sentence),
            false => said.more += 1,
        }
    }

    /// Says a sentence while the run goes on; it is not kept for the summary.
    pub fn say(&self, sentence: String) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.passing.len() < KEPT {
            said.passing.push(sentence);
        }
    }

    /// Takes a sentence back that is not true any more.
    pub fn withdraw(&self, sentence: &str) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = said.sentences.iter().position(|known| known == sentence) {
            said.sentences.remove(place);
            said.shown -= usize::from(place < said.shown);
        }
    }

    /// Those that have come since the last call.
    pub fn news(&self) -> Vec<String> {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut news = std::mem::take(&mut said.passing);
        news.extend(said.sentences.iter().skip(said.shown).cloned());
        said.shown = said.sentences.len();
        news
    }

    /// All of them, for the summary.
    pub fn all(&self) -> Vec<String> {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = said.sentences.clone();
        if said.more > 0 {
            all.push(format!("and {} more like these", said.more));
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
