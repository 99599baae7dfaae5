//! The spider: an order in, a result out.
