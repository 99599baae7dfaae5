//! Where a service is and how it is spoken: an address of the configuration, with the key of all daemons.

use std::path::Path;

use anyhow::{Context, Result};

use orbweaver_config::{Mode, Place as Address};
use orbweaver_wire::{Dialect, Key, Port, PortOptions, Service};

use crate::exit::Fatal;

/// A service that is listened on or connected to.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) host: String,
    pub(crate) number: u16,
    pub(crate) port: Port,
}

/// Makes places with the key that all daemons share.
pub(crate) struct Places {
    key: Option<Key>,
}

impl Places {
    /// With the secret in this file, or without one for loopback only.
    pub(crate) fn new(key_file: Option<&Path>) -> Result<Self> {
        let key = key_file.map(Key::read).transpose();
        let key = key.map_err(|error| Fatal::input(format!("Key_File: {error}")))?;
        Ok(Self { key })
    }

    /// A service at an address.
    pub(crate) fn at(&self, address: &Address, service: Service) -> Result<Place> {
        let port = Port::new(service, self.key.as_ref(), PortOptions::default());
        Ok(Place {
            host: address.host.clone(),
            number: address.port,
            port: port.context("the key cannot be used")?,
        })
    }
}

/// How orders are written in a mode.
pub(crate) fn dialect(mode: Mode) -> Dialect {
    match mode {
        Mode::Push => Dialect::Push,
        Mode::Pull => Dialect::Pull,
    }
}
