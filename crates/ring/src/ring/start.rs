//! Everything that a run begins with.

use std::sync::Arc;

use orbweaver_config::{Config, Settings, Sources};
use orbweaver_crawldir::Held;
use orbweaver_intake::LinkRule;
use orbweaver_watch::log::ShowLine;

use super::options::body_budget;
use crate::fetchers::line::Elsewhere;
use crate::machine::Descriptors;

/// Who fetches and who keeps.
pub(crate) enum Fetching {
    /// This process.
    Here,
    /// Other processes; then the ring runs until it is told to stop.
    Elsewhere(Elsewhere),
}

/// Everything that a run begins with.
pub(crate) struct Start {
    /// Where, for this process alone.
    pub(crate) held: Held,
    /// The settings as given, to be kept once the start is accepted.
    pub(crate) config: Config,
    pub(crate) settings: Settings,
    pub(crate) sources: Sources,
    pub(crate) fetching: Fetching,
    /// What the user has to know of it from the beginning.
    pub(crate) notices: Vec<String>,
    /// `demo` may replace what this run makes.
    pub(crate) is_demo: bool,
    /// Gets each line of the request log, too.
    pub(crate) show_log: Option<ShowLine>,
    /// What the user decides about links.
    pub(crate) rule: Option<Arc<dyn LinkRule>>,
}

impl Start {
    /// Fewer requests at once where the machine or the memory budget allows no more, with a notice.
    pub(crate) fn fit(&mut self, descriptors: Descriptors) {
        if !matches!(self.fetching, Fetching::Here) {
            return;
        }
        let fetches = body_budget(&self.settings).fetches();
        for (most, what) in [
            (
                descriptors.places,
                "the limit on open files allows {} concurrent requests instead of {}; ulimit -n raises it",
            ),
            (
                fetches,
                "the memory budget allows {} concurrent requests instead of {}; --memory raises it",
            ),
        ] {
            let wanted = self.settings.concurrency;
            if most < wanted {
                let said = what.replacen("{}", &most.to_string(), 1);
                self.notices
                    .push(said.replacen("{}", &wanted.to_string(), 1));
                self.settings.concurrency = most;
            }
        }
    }
}
