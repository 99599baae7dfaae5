//! Pure reading of what was fetched: charset, links, robots directives, sitemaps.
