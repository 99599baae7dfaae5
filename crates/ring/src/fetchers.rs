//! Who carries out orders: the spider of this process, or spiders that are other processes.

pub(crate) mod here;
pub(crate) mod line;
