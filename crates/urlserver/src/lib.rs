//! The URL server: who may be asked when, by host and by IP.
