//! What was measured of one contestant.

use std::time::Duration;

use orbweaver_simweb::Stats;

use crate::contest::Contestant;
use crate::measure::Used;

/// One run of one contestant.
pub(crate) struct Run {
    pub(crate) used: Used,
    pub(crate) server_cpu: Duration,
    pub(crate) stats: Stats,
    /// What the web found wrong with the visit.
    pub(crate) faults: Vec<String>,
}

/// All runs of one contestant over one web.
pub(crate) struct Standing {
    pub(crate) contestant: Contestant,
    pub(crate) runs: Vec<Run>,
}
