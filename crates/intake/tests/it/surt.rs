//! SURT keys against a table written by the `surt` package for Python.

use orbweaver_intake::surt;
use orbweaver_model::CrawlUrl;

#[test]
fn keys_are_those_of_the_python_package() {
    let table = include_str!("surt.tsv");
    let mut checked = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (url, key) = line.split_once('\t').unwrap();
        let url = CrawlUrl::from_canonical(url).unwrap();
        assert_eq!(surt(&url), key, "{url}");
        checked += 1;
    }
    assert!(checked >= 60, "only {checked} URLs in the table");
}

#[test]
fn escapes_in_escapes_cost_little() {
    let nested = format!(
        "http://example.org/%{}41?%{}41",
        "25".repeat(8000),
        "25".repeat(4000)
    );
    let key = surt(&CrawlUrl::from_canonical(&nested).unwrap());
    assert!(key.starts_with("org,example)/%25"));
}
