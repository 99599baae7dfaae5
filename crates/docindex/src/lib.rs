//! The doc index: one fold of events into an embedded LSM store.
