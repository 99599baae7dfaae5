//! Paths that are too deep, or repeat themselves.

use orbweaver_model::CrawlUrl;

/// How often in a row the same one to three segments may stand in a path. `/11/11/11` is a date somewhere; a fourth
/// time may be a relative link that feeds on itself.
const MAX_REPEATS: usize = 3;

/// Segments of a path: `/` has none, `/a` and `/a/` have one.
pub(super) fn segments(url: &CrawlUrl) -> usize {
    let path = url.path();
    let slashes = path.bytes().filter(|b| *b == b'/').count();
    slashes.saturating_sub(usize::from(path.ends_with('/')))
}

/// True when a group of one, two or three segments stands in the path more than `MAX_REPEATS`
/// times in a row.
pub(super) fn repeats(path: &str) -> bool {
    (1..=3).any(|period| {
        let later = path.split('/').skip(1 + period);
        let mut run = 0;
        path.split('/').skip(1).zip(later).any(|(one, other)| {
            run = if one == other { run + 1 } else { 0 };
            run >= MAX_REPEATS * period
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_segments_repeat_too() {
        assert!(repeats("/a/b/a/b/a/b/a/b"));
        assert!(!repeats("/a/b/a/b/a/b/a/x"));
        assert!(repeats("/x/a/b/c/a/b/c/a/b/c/a/b/c/y"));
        assert!(!repeats("/2011/11/11/11"));
        assert!(repeats("/a/a/a/a/"));
    }

    #[test]
    fn segments_are_counted() {
        for (path, count) in [("/", 0), ("/a", 1), ("/a/", 1), ("/a/b?c/d", 2)] {
            let url = CrawlUrl::from_canonical(&format!("http://h{path}")).unwrap();
            assert_eq!(segments(&url), count, "{path}");
        }
    }
}
