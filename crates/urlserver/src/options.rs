//! The settings of the URL server, and what is wrong with them.

use std::time::Duration;

use orbweaver_model::{HostPolicy, HostSetting, Limits, PerHost};
use thiserror::Error;

use crate::pace::Adapt;

/// How the URL server behaves. `Default` is the only place where defaults live.
#[derive(Clone, Debug)]
pub struct UrlServerOptions {
    /// Hosts that are worked on at once (Queue_Count); at least 1.
    pub queue_count: usize,
    /// URLs that wait in the queue of one host (Queue_Len); at least 1. The rest is left over.
    pub queue_len: usize,
    /// Requests that are with one host at once (Req_Host_Concurrent); at least 1.
    pub host_concurrent: u16,
    /// Requests per second to one host (Req_Host_Per_Sec); 0 means no limit.
    pub host_per_sec: f64,
    /// The gap of a host is at least this many times its response time; 0 means that slow hosts are asked as
    /// often as others. Not for hosts without a gap.
    pub slow_factor: f64,
    /// The longest gap that slowness and failures make; longer ones are kept only when they are asked for.
    pub slow_max: Duration,
    /// Requests that are with one IP address at once, whatever hosts share it; at least 1.
    pub ip_concurrent: u16,
    /// Requests per second to one IP address; 0 means no limit.
    pub ip_per_sec: f64,
    /// Orders that are out at once over all hosts; at least 1.
    pub in_flight: usize,
    /// The product token by which robots.txt files call us; never empty.
    pub agent: String,
    /// Limits on what comes from outside; here those of robots.txt, Crawl-delay and Retry-After count.
    pub limits: Limits,
    /// Pause before an unreachable robots.txt is requested again. The further pauses, and the time after
    /// which its URLs are retried later when none has helped, are multiples of it.
    pub robots_delay: Duration,
    /// URLs of one batch of candidates on one IP address beyond which every domain of the batch there goes
    /// on the reject list of the next request.
    pub ip_batch_max: usize,
    /// Bytes of URLs that the leftover queue holds; what is more goes back to the doc index.
    pub leftover_bytes: usize,
    /// Bytes for what is remembered of hosts without a queue: clocks, addresses, robots.txt; and half as much again
    /// for the robots.txt of those that have one.
    pub rest_bytes: usize,
    /// True when an order that is out can be given up (`Action::GiveUp`).
    pub can_give_up: bool,
    /// True when this crawl ran before: then nobody is asked until one delay has passed, because the
    /// process before may have asked just before it died.
    pub resumed: bool,
    /// What operators have set for hosts in earlier runs.
    pub settings: Vec<(String, HostSetting)>,
    /// What the configuration says of single hosts; operators win over it.
    pub hosts: PerHost<HostPolicy>,
}

/// The limits of politeness that can change while the crawl runs; as in the options.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// Requests per second to one host; 0 means no limit.
    pub host_per_sec: f64,
    /// Requests per second to one IP address; 0 means no limit.
    pub ip_per_sec: f64,
    /// Requests that are with one IP address at once; at least 1.
    pub ip_concurrent: u16,
    /// What the configuration says of single hosts.
    pub hosts: PerHost<HostPolicy>,
}

impl Default for UrlServerOptions {
    fn default() -> Self {
        Self {
            queue_count: 2048,
            queue_len: 64,
            host_concurrent: 1,
            host_per_sec: 1.0,
            slow_factor: 1.0,
            slow_max: Duration::from_secs(60),
            ip_concurrent: 1,
            ip_per_sec: 1.0,
            in_flight: 512,
            agent: String::from("orbweaver"),
            limits: Limits::default(),
            robots_delay: Duration::from_secs(2),
            ip_batch_max: 256,
            leftover_bytes: 32 << 20,
            rest_bytes: 64 << 20,
            can_give_up: false,
            resumed: false,
            settings: Vec::new(),
            hosts: PerHost::default(),
        }
    }
}

/// What the URL server reports instead of working.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum UrlServerError {
    /// A setting makes no sense; correct it and start again.
    #[error("{name} must be {must}")]
    Option {
        /// The setting.
        name: &'static str,
        /// What it must be.
        must: &'static str,
    },
    /// The URL server has ended, so the message went nowhere; look in the log for what ended it.
    #[error("the URL server has stopped")]
    Stopped,
}

impl UrlServerOptions {
    /// Checks what the types cannot.
    ///
    /// # Errors
    ///
    /// Names the first setting that makes no sense.
    pub fn validate(&self) -> Result<(), UrlServerError> {
        let at_least_one = "at least 1";
        let rate = "a number of requests per second, 0 or more";
        let is_rate = |value: f64| value.is_finite() && value >= 0.0;
        // Slots are numbered in 32 bits, and half of them stay free for the hosts of moved robots.txt files.
        let slots_fit = self.queue_count <= 1 << 31;
        for (fine, name, must) in [
            (
                self.queue_count > 0 && slots_fit,
                "queue_count",
                at_least_one,
            ),
            (self.queue_len > 0, "queue_len", at_least_one),
            (self.host_concurrent > 0, "host_concurrent", at_least_one),
            (self.ip_concurrent > 0, "ip_concurrent", at_least_one),
            (self.in_flight > 0, "in_flight", at_least_one),
            (is_rate(self.host_per_sec), "host_per_sec", rate),
            (is_rate(self.ip_per_sec), "ip_per_sec", rate),
            (
                is_rate(self.slow_factor),
                "slow_factor",
                "a number, 0 or more",
            ),
            (!self.agent.is_empty(), "agent", "a product token"),
        ] {
            if !fine {
                return Err(UrlServerError::Option { name, must });
            }
        }
        Ok(())
    }

    /// Bytes that the robots.txt rules of hosts with a queue may take.
    pub(crate) fn rules_bytes(&self) -> usize {
        self.rest_bytes / 2
    }

    /// Time between two requests to a host that does not ask for more.
    pub(crate) fn host_delay(&self) -> Duration {
        delay(self.host_per_sec)
    }

    /// How the gaps of slow and failing hosts grow.
    pub(crate) fn adapt(&self) -> Adapt {
        Adapt {
            slow_factor: self.slow_factor,
            max: self.slow_max,
        }
    }

    /// Time between two requests to an address.
    pub(crate) fn ip_delay(&self) -> Duration {
        delay(self.ip_per_sec)
    }
}

/// Time between two requests at a rate; 0 means no limit.
pub(crate) fn delay(per_sec: f64) -> Duration {
    if per_sec > 0.0 {
        Duration::try_from_secs_f64(1.0 / per_sec).unwrap_or(Duration::MAX)
    } else {
        Duration::ZERO
    }
}
