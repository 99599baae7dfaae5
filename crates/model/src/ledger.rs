//! The ledger: every URL ever accepted is in exactly one column, at any moment.

use serde::{Deserialize, Serialize};

use crate::outcome::{Column, Outcome, OutcomeClass};

/// Counts of URLs by what became of them. Written in the same batch as the changes it counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// URLs that ever entered the index, refused ones included.
    pub accepted: u64,
    /// Finished URLs by class, in the order of `OutcomeClass::ALL`.
    classes: Vec<u64>,
    /// Refused URLs that do not belong to the crawl; they are counted in their class, too.
    pub out_of_scope: u64,
    /// URLs still to be asked for: waiting, claimed, or to be retried.
    pub queued: u64,
    /// Bytes received in all attempts.
    pub bytes: u64,
    /// Requests for URLs, retries included.
    pub attempts: u64,
    /// Requests for robots.txt files, retries and redirects included.
    pub robots_requests: u64,
    /// URLs that ever brought a document, however often they are visited: what a page budget counts.
    pub pages: u64,
}

impl Ledger {
    /// URLs of a class.
    pub fn class(&self, class: OutcomeClass) -> u64 {
        self.classes.get(class as usize).copied().unwrap_or(0)
    }

    /// URLs in a column.
    pub fn column(&self, column: Column) -> u64 {
        let finished: u64 = OutcomeClass::ALL
            .iter()
            .filter(|c| c.column() == column)
            .map(|class| self.class(*class))
            .sum();
        if column == Column::Queued {
            self.queued
        } else {
            finished
        }
    }

    /// Documents received, whole or cut.
    pub fn documents(&self) -> u64 {
        OutcomeClass::ALL
            .iter()
            .filter(|class| class.is_document())
            .map(|class| self.class(*class))
            .sum()
    }

    /// accepted = done + failed + refused + queued.
    pub fn balances(&self) -> bool {
        let columns = [
            Column::Done,
            Column::Failed,
            Column::Refused,
            Column::Queued,
        ];
        self.accepted
            == columns
                .iter()
                .map(|column| self.column(*column))
                .sum::<u64>()
    }

    /// A URL is accepted, and waits.
    pub fn accept(&mut self) {
        self.accepted += 1;
        self.queued += 1;
    }

    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.attempts + self.robots_requests
    }

    /// A URL that waited is finished.
    pub fn finish(&mut self, outcome: &Outcome) {
        let class = outcome.class;
        debug_assert_ne!(
            class.column(),
            Column::Queued,
            "a deferred URL is not finished"
        );
        self.queued = self.queued.saturating_sub(1);
        *self.place(class) += 1;
        self.out_of_scope += u64::from(outcome.out_of_scope);
    }

    /// A finished URL is to be asked for after all.
    pub fn reopen(&mut self, outcome: &Outcome) {
        self.drop_scope(outcome);
        let place = self.place(outcome.class);
        *place = place.saturating_sub(1);
        self.queued += 1;
    }

    /// What became of a finished URL turns out to be something else.
    pub fn amend(&mut self, from: &Outcome, to: &Outcome) {
        self.drop_scope(from);
        let place = self.place(from.class);
        *place = place.saturating_sub(1);
        *self.place(to.class) += 1;
        self.out_of_scope += u64::from(to.out_of_scope);
    }

    fn drop_scope(&mut self, outcome: &Outcome) {
        let fewer = u64::from(outcome.out_of_scope);
        self.out_of_scope = self.out_of_scope.saturating_sub(fewer);
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "the vector has just been made long enough"
    )]
    fn place(&mut self, class: OutcomeClass) -> &mut u64 {
        self.classes.resize(OutcomeClass::ALL.len(), 0);
        &mut self.classes[class as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balances_through_every_move() {
        let mut ledger = Ledger::default();
        for _ in 0..3 {
            ledger.accept();
            assert!(ledger.balances());
        }
        let plain = Outcome::plain;
        ledger.finish(&plain(OutcomeClass::RedirectFollowed));
        ledger.finish(&plain(OutcomeClass::FailedDns));
        let (from, to) = (OutcomeClass::RedirectFollowed, OutcomeClass::RedirectLimit);
        ledger.amend(&plain(from), &plain(to));
        assert!(ledger.balances());
        assert_eq!(ledger.column(Column::Failed), 2);
        assert_eq!((ledger.column(Column::Done), ledger.queued), (0, 1));
        ledger.finish(&Outcome::out_of_scope("deeper than 3"));
        assert_eq!(
            (ledger.out_of_scope, ledger.column(Column::Refused)),
            (1, 1)
        );
        ledger.reopen(&Outcome::out_of_scope("deeper than 3"));
        assert_eq!((ledger.out_of_scope, ledger.queued), (0, 1));
        assert!(ledger.balances());
    }
}
