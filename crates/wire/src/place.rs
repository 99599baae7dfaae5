//! Where a service is and how it is spoken: host and port, with the key that all daemons share.

use std::path::Path;

use crate::error::WireError;
use crate::keyed::{Key, Port, PortOptions};
use crate::service::Service;

/// A service that is listened on or connected to.
#[derive(Clone, Debug)]
pub struct Place {
    /// The host.
    pub host: String,
    /// The number of its port.
    pub number: u16,
    /// How it is spoken there.
    pub port: Port,
}

/// Makes places with one key.
#[derive(Clone, Debug)]
pub struct Places {
    key: Option<Key>,
}

impl Places {
    /// With the secret in this file, or without one for loopback only.
    pub fn new(key_file: Option<&Path>) -> Result<Self, WireError> {
        let key = key_file.map(Key::read).transpose()?;
        Ok(Self { key })
    }

    /// A service at an address.
    pub fn at(&self, host: &str, number: u16, service: Service) -> Result<Place, WireError> {
        Ok(Place {
            host: host.to_owned(),
            number,
            port: Port::new(service, self.key.as_ref(), PortOptions::default())?,
        })
    }
}
