//! The recipes of those who build Orbweaver.
fn main() {}
