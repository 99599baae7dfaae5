//! The orbweaver binary.
fn main() {}
