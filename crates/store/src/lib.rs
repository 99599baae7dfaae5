//! The store: WARC files and their CDXJ index, durable before they are acknowledged.
