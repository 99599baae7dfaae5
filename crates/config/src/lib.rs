//! The configuration: what the user wrote ([`Config`]), and what the program needs ([`Settings`] and the settings of
//! the daemons). Between the two every mistake is found and reported at once.
//!
//! Nothing here prints, ends the process, or knows a stage beyond the options of intake.

mod config;
mod daemons;
mod error;
mod options;
mod settings;
mod sources;
pub mod units;

pub use config::{
    BudgetConfig, Config, FetchConfig, LimitsConfig, LogConfig, PolitenessConfig, RecrawlConfig,
    RetryConfig, ScopeConfig, StoreConfig, TrapsConfig,
};
pub use daemons::{
    DaemonConfig, Mode, Place, SpiderSettings, StoreSettings, UrlServerSettings, both,
};
pub use error::Error;
pub use options::{LogOptions, RetryOptions};
pub use settings::Settings;
pub use sources::Sources;
