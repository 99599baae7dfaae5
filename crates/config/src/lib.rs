//! The configuration: what the user wrote ([`Config`]), and what the program needs ([`Settings`] and the settings of
//! the daemons). Between the two every mistake is found and reported at once.
//!
//! Nothing here prints, ends the process, or knows a stage beyond the options of intake.

mod config;
mod daemons;
#[cfg(test)]
mod docs;
mod error;
mod hosts;
mod kinds;
mod mistakes;
mod names;
mod options;
mod origins;
mod parts;
mod reader;
mod rules;
mod settings;
mod sources;
pub mod units;

pub use config::{
    BudgetConfig, Config, DaemonsConfig, FetchConfig, LimitsConfig, LogConfig, PolitenessConfig,
    RecrawlConfig, RetryConfig, ScopeConfig, SpiderConfig, StoreConfig, TrapsConfig,
    UrlServerConfig,
};
pub use daemons::{Mode, Place, SpiderSettings, StoreSettings, UrlServerSettings};
pub use error::Error;
pub use hosts::{AuthConfig, HostConfig, HostLimitsConfig, HostTrapsConfig};
pub use options::{LogOptions, RetryOptions};
pub use origins::Origins;
pub use rules::HostSettings;
pub use settings::Settings;
pub use sources::Sources;
