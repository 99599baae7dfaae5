//! WARC files: rendering a group of records, writing, reading and recovering.

pub(crate) mod bulk;
pub(crate) mod group;
pub(crate) mod last;
pub(crate) mod prepare;
pub(crate) mod reader;
pub(crate) mod recover;
pub(crate) mod render;
mod resync;
mod seal;
pub(crate) mod tail;
#[cfg(test)]
mod tests;
pub(crate) mod writer;
