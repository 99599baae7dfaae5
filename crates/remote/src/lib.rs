//! Orders that are with spiders in other processes: who has which, what was heard of them, what is lost and sent again, and how
//! many each spider gets at once.
//!
//! [`Orders`] is the table of all that are out and [`Window`] learns what a spider can take; both are pure. [`Spider`] holds
//! the connection to one and speaks the line protocol, [`Peer`] is what is known of it.

mod orders;
mod peer;
mod spiders;
mod window;

pub use orders::{Orders, Over, Silence, Wish};
pub use peer::Peer;
pub use spiders::{Heard, Outgoing, Spider};
pub use window::{Turn, Window};
