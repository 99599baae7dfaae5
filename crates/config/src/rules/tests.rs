//! Tables about hosts, as they are read, validated and laid over one another.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::{Error, Settings, SpiderSettings};

fn config(text: &str) -> Config {
    let (config, mistakes) = crate::reader::read(text, Path::new("x.toml"));
    assert_eq!(mistakes, [""; 0], "{text}");
    config
}

fn hosts(text: &str) -> HostSettings {
    Settings::new(&config(text)).unwrap().hosts
}

fn refused(text: &str) -> String {
    Settings::new(&config(text)).unwrap_err().to_string()
}

const ALL: &str = r#"
[politeness]
ip_rate = 3
per_ip = 2

[domain."example.org"]
rate = 0.5
per_host = 2
robots = "ignore"
headers = { X-Team = "crawl", Accept-Language = "de" }
limits = { total_timeout_s = 90, max_body_bytes = 1000 }
traps = { copies = 7 }

[host."www.example.org"]
rate = 3
robots = "obey"
headers = { accept-language = "en" }
auth = { user = "me", password = "open sesame" }
traps = false

[host."www.example.org".limits]
idle_timeout_s = 5
"#;

#[test]
fn the_most_specific_wins_key_by_key() {
    let hosts = hosts(ALL);
    let www = hosts.policies.get("www.example.org").unwrap();
    assert_eq!(
        (www.rate, www.per_host, www.ignore_robots),
        (Some(3.0), Some(2), false)
    );
    let other = hosts.policies.get("other.example.org").unwrap();
    assert_eq!(
        (other.rate, other.per_host, other.ignore_robots),
        (Some(0.5), Some(2), true)
    );
    assert_eq!(hosts.robots_ignored(), ["*.example.org"]);
    let www = hosts.requests.get("www.example.org").unwrap();
    assert_eq!(www.headers["accept-language"], "en");
    assert_eq!(www.headers["x-team"], "crawl");
    let other = hosts.requests.get("example.org").unwrap();
    assert_eq!(other.headers["accept-language"], "de");
    assert_eq!(other.credentials, None);
    let limits = www.limits.as_ref().unwrap();
    assert_eq!(limits.total_timeout, Duration::from_secs(90));
    assert_eq!(limits.header_timeout, Duration::from_secs(90));
    assert_eq!(limits.idle_timeout, Duration::from_secs(5));
    assert_eq!(limits.max_body_bytes, 1000);
    assert!(!hosts.traps.get("www.example.org").unwrap().enabled);
    assert_eq!(hosts.traps.get("a.example.org").unwrap().copies, 7);
    assert_eq!(hosts.policies.get("example.net"), None);
}

#[test]
fn a_domain_is_laid_over_the_one_that_it_is_part_of() {
    let text = "[domain.\"example.org\"]\nrate = 0.5\nper_host = 1\n[domain.\"deep.example.org\"]\nrate = 0.25\n\
                [host.\"a.deep.example.org\"]\nrobots = \"ignore\"";
    let hosts = hosts(text);
    for (host, rate, ignored) in [
        ("b.example.org", 0.5, false),
        ("b.deep.example.org", 0.25, false),
        ("a.deep.example.org", 0.25, true),
    ] {
        let policy = hosts.policies.get(host).unwrap();
        assert_eq!(
            (policy.rate, policy.per_host),
            (Some(rate), Some(1)),
            "{host}"
        );
        assert_eq!(policy.ignore_robots, ignored, "{host}");
    }
}

#[test]
fn credentials_are_whole_and_secret() {
    let hosts = hosts(ALL);
    let value = &hosts.requests.get("www.example.org").unwrap().credentials;
    let value = &value.as_ref().unwrap().value;
    assert_eq!(value, "Basic bWU6b3BlbiBzZXNhbWU=");
    let settings = format!("{:?}", Settings::new(&config(ALL)).unwrap());
    assert!(!settings.contains("sesame") && !settings.contains("bWU6"));
    let token = "[host.\"a.org\"]\nauth = { token = \"t0\", over_http = true }";
    let token = Settings::new(&config(token)).unwrap().hosts;
    let credentials = token.requests.get("a.org").unwrap().credentials.clone();
    let credentials = credentials.unwrap();
    assert!(credentials.value == "Bearer t0" && credentials.over_http);
}

#[test]
fn what_a_crawl_directory_keeps_has_no_secrets_and_says_that_one_is_missing() {
    let text = ALL.to_owned() + "[host.\"a.org\"]\nauth = { token = \"open sesame\" }\n";
    let kept = config(&text).kept().unwrap();
    assert!(!kept.contains("sesame"), "{kept}");
    let again = config(&kept);
    assert_eq!(
        again.hosts["www.example.org"].headers["accept-language"],
        "en"
    );
    let settings = Settings::new(&again).unwrap();
    let missing = settings.demand_secrets().unwrap_err().to_string();
    assert!(
        missing.contains("the password is not given") && missing.contains("the token is not given"),
        "{missing}"
    );
    // The file again, and all is there.
    assert!(
        Settings::new(&again.clone().under(config(&text)))
            .unwrap()
            .demand_secrets()
            .is_ok()
    );
    assert!(matches!(
        SpiderSettings::new(&again),
        Err(Error::Mistakes(_))
    ));
}

#[test]
fn a_secret_can_lie_in_a_file_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("secret");
    std::fs::write(&file, "open sesame\n").unwrap();
    let text = format!("[host.\"a.org\"]\nauth = {{ user = \"me\", password_file = {file:?} }}");
    let there = Settings::new(&config(&text)).unwrap();
    assert!(there.demand_secrets().is_ok());
    let credentials = &there.hosts.requests.get("a.org").unwrap().credentials;
    assert_eq!(
        credentials.as_ref().unwrap().value,
        "Basic bWU6b3BlbiBzZXNhbWU="
    );
    let kept = config(&config(&text).kept().unwrap());
    assert!(Settings::new(&kept).unwrap().demand_secrets().is_ok());
    std::fs::remove_file(&file).unwrap();
    let gone = Settings::new(&config(&text)).unwrap();
    let missing = gone.demand_secrets().unwrap_err().to_string();
    assert!(
        missing.starts_with("auth (line 2 of x.toml): cannot read"),
        "{missing}"
    );
}

#[test]
fn every_mistake_has_its_line() {
    let error = refused(
        "[host.\"WWW.example.org\"]\nrate = -1\nper_host = 0\nrobots = \"never\"\n\
         [host.\"a.org\"]\nauth = { user = \"a:b\", password = \"s3same\", token = \"s3same\" }\n\
         [host.\"a.org\".headers]\nHost = \"b.org\"\nContent-Length = \"5\"\nAuthorization = \"s3same\"\n\"b@d\" = \"x\"\nX = \"a\\nb\"\n\
         [domain.\"co.uk\"]\nauth = { token = \"s3same\" }\n[domain.\"0.1\"]\nrate = 1\n\
         [domain.\"a.org\".limits]\ntotal_timeout_s = 0\nmax_body_bytes = 2000000000\n[host.\"a.org:80\"]\nrate = 1",
    );
    for part in [
        "host.\"WWW.example.org\" (line 1 of x.toml) is not the name of a host",
        "rate (line 2 of x.toml) must be",
        "per_host (line 3 of x.toml) must be",
        "robots (line 4 of x.toml) must be",
        "auth (line 6 of x.toml) must have user and password, or a token",
        "user (line 6 of x.toml) must not contain a colon",
        "Host (line 8 of x.toml): this header cannot be set: it follows from the URL",
        "Content-Length (line 9 of x.toml): this header cannot be set",
        "Authorization (line 10 of x.toml): this header cannot be set",
        "b@d (line 11 of x.toml): not a valid header name",
        "X (line 12 of x.toml) must be printable ASCII",
        "auth (line 14 of x.toml) cannot be set for a public suffix",
        "domain.\"0.1\" (line 15 of x.toml) is not the name of a domain",
        "total_timeout_s (line 18 of x.toml) must be above 0",
        "max_body_bytes (line 19 of x.toml) must be above 0, and not above 1073741824",
        "host.\"a.org:80\" (line 20 of x.toml) is not the name of a host",
    ] {
        assert!(error.contains(part), "{part} is missing in: {error}");
    }
    assert!(!error.contains("s3same"), "{error}");
}

#[test]
fn a_host_is_not_asked_more_often_than_its_address() {
    let error = refused("[host.\"a.org\"]\nrate = 2\nper_host = 2\n[domain.\"b.org\"]\nrate = 0");
    for part in [
        "rate (line 2 of x.toml) must not be above politeness.ip_rate, 1 requests",
        "per_host (line 3 of x.toml) must not be above politeness.per_ip, 1 concurrent requests",
        "rate (line 5 of x.toml) must not be above politeness.ip_rate",
    ] {
        assert!(error.contains(part), "{part} is missing in: {error}");
    }
    assert_eq!(
        hosts("[politeness]\nip_rate = 0\n[host.\"a.org\"]\nrate = 0").missing,
        [""; 0]
    );
}

#[test]
fn unknown_keys_and_wrong_kinds_have_their_lines_too() {
    let text = "host = 5\n[domain.\"a.org\"]\nratte = 1\nrate = \"x\"\nheaders = [\"a\"]\ntraps = 5\n\
                [domain.\"a.org\".auth]\npasword = \"s3same\"\nover_http = \"s3same\"\n[domain.\"a.org\".limits]\nmax_headers = 5\n\
                [domain]\n\"b.org\" = 1\n[domain.\"c.org\".headers]\nX = 5";
    let (_, mistakes) = crate::reader::read(text, Path::new("x.toml"));
    let all = mistakes.join("\n");
    for part in [
        "line 1, `host`: expected a table, as in [host.\"www.example.org\"]",
        "line 3, `ratte`: unknown key; did you mean rate?",
        "line 4, `rate`: expected a number",
        "line 5, `headers`: expected a table",
        "line 6, `traps`: expected true or false, or a table",
        "line 8, `pasword`: unknown key; did you mean password?",
        "line 9, `over_http`: expected true or false",
        "line 11, `max_headers`: unknown key",
        "line 13, `b.org`: expected a table",
        "line 15, `X`: expected a text in quotes",
    ] {
        assert!(all.contains(part), "{part} is missing in: {all}");
    }
    assert!(!all.contains("s3same"), "{all}");
}
