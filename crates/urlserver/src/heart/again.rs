//! Orders that are sent again, because nothing was heard of them or their spider is gone.
//!
//! For the server such an order is one more request, so it keeps the gap like any other: from the moment at which it
//! was lost, for until then the first may have been made. It goes out before anything new of its host, and only when
//! it really does is it given its new name; who carries orders asks until then.

use std::time::Duration;

use orbweaver_model::{Timestamp, TransId};

use super::Heart;

/// How soon to ask again while another order of the host or address is on its way out.
const SOON: Duration = Duration::from_millis(50);

/// What is to become of an order that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// It goes out now, under this name.
    Now(TransId),
    /// Not before then; ask again.
    At(Timestamp),
    /// It is over.
    Never,
}

impl Heart {
    /// An order is presumed lost and is to be sent again. To be called when it could go out at once.
    pub fn resend(&mut self, trans: TransId, now: Timestamp) -> Resend {
        let ip_delay = self.ip_delay;
        let Some((slot, host)) = self.bench.pair(trans.slot) else {
            return Resend::Never;
        };
        let Some(out) = slot.out(trans) else {
            return Resend::Never;
        };
        let ip = out.ip;
        let at_ip = self.ips.entry(ip);
        if !std::mem::replace(&mut out.lost, true) {
            let announced = std::mem::take(&mut out.announced);
            host.clock.lose(now, host.delay, announced);
            at_ip.clock.lose(now, ip_delay, announced);
        }
        let times = (
            host.clock.again_at(host.delay),
            at_ip.clock.again_at(ip_delay),
        );
        let (Some(host_at), Some(ip_at)) = times else {
            return Resend::At(now.after(SOON));
        };
        let at = host_at.max(ip_at);
        if at > now {
            return Resend::At(at);
        }
        out.lost = false;
        host.clock.give_again();
        at_ip.clock.give_again();
        let Some(renamed) = slot.rename(trans) else {
            return Resend::Never;
        };
        self.watch_order(renamed, now);
        Resend::Now(renamed)
    }
}
