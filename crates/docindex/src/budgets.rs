//! How much may be taken from a host, and from all hosts of a domain together.

use orbweaver_model::{Budgets, Room, Timestamp, Used};

use crate::domains::Total;
use crate::record::HostRecord;

/// What may still be asked of a host. With what its domain has used comes what is about to be handed out for it.
pub(crate) fn room(
    budgets: &Budgets,
    host: &HostRecord,
    claimed: u32,
    domain: Option<(&Total, usize)>,
    now: Timestamp,
) -> Room {
    let used = Used {
        name: &host.name,
        asked: host.asked,
        claimed,
        bytes: host.bytes,
        since: host.since,
    };
    let of_host = used.room(&budgets.host, now);
    let Some((total, lent)) = domain else {
        return of_host;
    };
    let used = Used {
        name: &total.name,
        asked: total.asked,
        claimed: total
            .claimed
            .saturating_add(u32::try_from(lent).unwrap_or(u32::MAX)),
        bytes: total.bytes,
        since: total.since,
    };
    match (of_host, used.room(&budgets.domain, now)) {
        (Room::Urls(ours), Room::Urls(its)) => Room::Urls(ours.min(its)),
        (spent @ Room::Spent(..), _) | (_, spent) => spent,
    }
}
