//! Whose turn it is: alarms in the order of their times, and places that hosts share fairly.
//!
//! Both know nothing of queues and URLs; the URL server says what waits, and when it may go.

mod alarms;
mod places;

pub use alarms::Alarms;
pub use places::{Home, Neighbourhood, Places, Speed, Usual};
