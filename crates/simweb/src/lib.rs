//! A seeded simulated web that counts what its visitors do.
