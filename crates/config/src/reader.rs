//! Reading a configuration file: every mistake at once, each with its line.
//!
//! The text is parsed once, with the places of all keys. Then each key is looked up on its own, so that one mistake
//! hides no other. What is right goes into a [`Config`]; what is wrong is said. A message names the key and never its
//! value, which can be a secret.

use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::{Config, SECTIONS};
use crate::error::Error;
use crate::hosts::{AuthConfig, HostLimitsConfig, HostTrapsConfig, PLAIN, TABLES};
use crate::kinds::{self, Key};
use crate::names::{self, Unit};
use crate::origins::{Origin, Origins};
use crate::settings;

/// Mistakes that are named; a file with more of them is not a configuration.
const MOST: usize = 50;

impl Config {
    /// Reads a file. Every mistake is named with its line: what is no TOML, unknown keys, values of the wrong kind.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        let (config, mut mistakes) = read(&text, path);
        if mistakes.is_empty() {
            return Ok(config);
        }
        // What could be read may be wrong in other ways, which are named along.
        mistakes.extend(settings::mistakes(&config));
        Err(Error::File {
            path: path.to_owned(),
            mistakes,
        })
    }
}

/// Reads a configuration as far as it can be read, and says what is wrong with the rest.
pub(crate) fn read(text: &str, file: &Path) -> (Config, Vec<String>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader {
        text,
        file: file.into(),
        good: toml::Table::new(),
        origins: Origins::default(),
        mistakes: Vec::new(),
    };
    for error in errors {
        let at = error.span().map_or(text.len(), |span| span.start);
        let line = reader.line(at);
        let begun = text.lines().nth(line - 1).unwrap_or_default();
        let begun = begun.split('=').next().unwrap_or_default().trim();
        let message = error.message().trim_end().replace('\n', "; ");
        reader.wrong(line, begun, &message);
    }
    reader.root(table.get_ref());
    reader.finish()
}

/// What was read so far.
struct Reader<'t> {
    text: &'t str,
    file: Arc<Path>,
    /// Values of the right kind, under the names that we have for them.
    good: toml::Table,
    origins: Origins,
    /// By line.
    mistakes: Vec<(usize, String)>,
}

type Name<'t> = Spanned<std::borrow::Cow<'t, str>>;

impl Reader<'_> {
    fn root(&mut self, table: &DeTable<'_>) {
        for (name, value) in table {
            let written = name.get_ref().as_ref();
            let section = SECTIONS.iter().find(|(section, _)| *section == written);
            match (section, value.get_ref().as_table()) {
                (Some((section, _)), Some(keys)) => {
                    for (name, value) in keys {
                        self.key(section, name, value);
                    }
                }
                (Some((section, _)), None) if !section.is_empty() => {
                    self.no_table(name, &format!("[{section}]"));
                }
                (_, table) if ["host", "domain"].contains(&written) => match table {
                    Some(names) => self.hosts(written, names),
                    None => self.no_table(name, "[host.\"www.example.org\"]"),
                },
                // The daemons' files have the settings of a crawl in a table of its own.
                (_, Some(keys)) if ["crawl", "Crawl"].contains(&written) => self.root(keys),
                _ => self.key("", name, value),
            }
        }
    }

    fn key(&mut self, section: &str, name: &Name<'_>, value: &Spanned<DeValue<'_>>) {
        let written = name.get_ref().as_ref();
        let line = self.line(name.span().start);
        let Some((key, unit)) = names::named(section, written) else {
            return self.unknown(line, written, names::nearest(section, written));
        };
        let origin = Origin {
            file: Arc::clone(&self.file),
            line,
            written: written.to_owned(),
        };
        if let Some(before) = self.origins.note(key.path, origin) {
            let twice = format!("the same setting as {before}; keep one of them");
            return self.wrong(line, written, &twice);
        }
        match value_in(unit, plain(value.get_ref())) {
            Some(value) if (key.fits)(&value) => self.take(key, value),
            _ if unit == Unit::Millis => {
                self.wrong(line, written, "expected a whole number of milliseconds");
            }
            _ => self.wrong(line, written, &format!("expected {}", key.expected)),
        }
    }

    /// The tables about hosts, or about domains.
    fn hosts(&mut self, kind: &str, names: &DeTable<'_>) {
        let mut good = toml::Table::new();
        for (name, value) in names {
            let written = name.get_ref().as_ref();
            let path = format!("{kind}.{written:?}");
            self.place(&path, name, &path);
            match value.get_ref().as_table() {
                Some(keys) => {
                    let host = self.host(&path, keys);
                    good.insert(written.to_owned(), host.into());
                }
                None => self.no_table(name, &format!("[{path}]")),
            }
        }
        self.good.insert(kind.to_owned(), good.into());
    }

    fn host(&mut self, path: &str, keys: &DeTable<'_>) -> toml::Table {
        let mut good = toml::Table::new();
        for (name, value) in keys {
            let written = name.get_ref().as_ref();
            let within = format!("{path}.{written}");
            let table = match (written, value.get_ref()) {
                ("headers", DeValue::Table(lines)) => self.headers(&within, lines),
                ("auth", DeValue::Table(keys)) => self.table(&within, AuthConfig::KEYS, keys),
                ("limits", DeValue::Table(keys)) => {
                    self.table(&within, HostLimitsConfig::KEYS, keys)
                }
                ("traps", DeValue::Table(keys)) => self.table(&within, HostTrapsConfig::KEYS, keys),
                ("traps", DeValue::Boolean(on)) => {
                    toml::Table::from_iter([("enabled".to_owned(), (*on).into())])
                }
                ("traps", _) => {
                    let line = self.line(name.span().start);
                    self.wrong(line, written, "expected true or false, or a table");
                    continue;
                }
                (word, _) if TABLES.contains(&word) => {
                    self.no_table(name, &format!("{word} = {{ … }}"));
                    continue;
                }
                _ => {
                    self.single(path, &PLAIN, name, value, &mut good);
                    continue;
                }
            };
            self.place(&within, name, written);
            good.insert(written.to_owned(), table.into());
        }
        good
    }

    fn headers(&mut self, path: &str, lines: &DeTable<'_>) -> toml::Table {
        let mut good = toml::Table::new();
        for (name, value) in lines {
            let written = name.get_ref().as_ref();
            self.place(&format!("{path}.{written:?}"), name, written);
            match value.get_ref().as_str() {
                Some(text) => {
                    good.insert(written.to_owned(), text.into());
                }
                None => {
                    let line = self.line(name.span().start);
                    self.wrong(line, written, "expected a text in quotes");
                }
            }
        }
        good
    }

    fn table(&mut self, path: &str, keys: &[Key], table: &DeTable<'_>) -> toml::Table {
        let mut good = toml::Table::new();
        for (name, value) in table {
            self.single(path, keys, name, value, &mut good);
        }
        good
    }

    /// One key of a table that has no other names.
    fn single(
        &mut self,
        path: &str,
        keys: &[Key],
        name: &Name<'_>,
        value: &Spanned<DeValue<'_>>,
        good: &mut toml::Table,
    ) {
        let written = name.get_ref().as_ref();
        let line = self.line(name.span().start);
        let Some(key) = keys.iter().find(|key| key.name == written) else {
            let tables = TABLES.iter().copied().filter(|_| keys.len() == PLAIN.len());
            let names = keys.iter().map(|key| key.name).chain(tables);
            return self.unknown(line, written, kinds::near(written, names));
        };
        self.place(&format!("{path}.{written}"), name, written);
        match plain(value.get_ref()).filter(key.fits) {
            Some(value) => {
                good.insert(written.to_owned(), value);
            }
            None => self.wrong(line, written, &format!("expected {}", key.expected)),
        }
    }

    /// Notes where a key of a host stands.
    fn place(&mut self, path: &str, name: &Name<'_>, written: &str) {
        let origin = Origin {
            file: Arc::clone(&self.file),
            line: self.line(name.span().start),
            written: written.to_owned(),
        };
        self.origins.note(path, origin);
    }

    fn no_table(&mut self, name: &Name<'_>, form: &str) {
        let line = self.line(name.span().start);
        let must = format!("expected a table, as in {form}");
        self.wrong(line, name.get_ref(), &must);
    }

    fn take(&mut self, key: &Key, value: toml::Value) {
        let table = match key.section {
            "" => Some(&mut self.good),
            section => self
                .good
                .entry(section)
                .or_insert_with(|| toml::Table::new().into())
                .as_table_mut(),
        };
        if let Some(table) = table {
            table.insert(key.name.to_owned(), value);
        }
    }

    fn unknown(&mut self, line: usize, written: &str, meant: Option<&str>) {
        let message = match meant {
            Some(meant) => format!("unknown key; did you mean {meant}?"),
            None => "unknown key".to_owned(),
        };
        self.wrong(line, written, &message);
    }

    fn wrong(&mut self, line: usize, written: &str, message: &str) {
        self.mistakes
            .push((line, format!("line {line}, `{written}`: {message}")));
    }

    /// The line of a place in the text.
    fn line(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or(self.text);
        before.matches('\n').count() + 1
    }

    fn finish(mut self) -> (Config, Vec<String>) {
        self.mistakes.sort();
        self.mistakes.truncate(MOST);
        let mut mistakes: Vec<String> = self.mistakes.into_iter().map(|(_, said)| said).collect();
        let config = toml::Value::Table(self.good).try_into::<Config>();
        let config = config.unwrap_or_else(|error| {
            // Every value was seen to fit, so that this is a fault of ours and still no reason to go on.
            mistakes.push(error.message().to_owned());
            Config::default()
        });
        let origins = self.origins;
        (Config { origins, ..config }, mistakes)
    }
}

/// A value in the unit of our key.
fn value_in(unit: Unit, value: Option<toml::Value>) -> Option<toml::Value> {
    match (unit, value?) {
        (Unit::Same, value) => Some(value),
        (Unit::Millis, toml::Value::Integer(millis)) if millis >= 0 => {
            Some(toml::Value::Float(millis as f64 / 1000.0))
        }
        (Unit::Millis, _) => None,
    }
}

/// A value without the places in it; none for a number that is too large for 64 bits.
fn plain(value: &DeValue<'_>) -> Option<toml::Value> {
    Some(match value {
        DeValue::String(text) => toml::Value::String(text.clone().into_owned()),
        DeValue::Integer(number) => {
            toml::Value::Integer(i64::from_str_radix(number.as_str(), number.radix()).ok()?)
        }
        DeValue::Float(number) => toml::Value::Float(number.as_str().parse().ok()?),
        DeValue::Boolean(flag) => toml::Value::Boolean(*flag),
        DeValue::Datetime(moment) => toml::Value::Datetime(*moment),
        DeValue::Array(list) => {
            let list = list.iter().map(|value| plain(value.get_ref()));
            toml::Value::Array(list.collect::<Option<_>>()?)
        }
        DeValue::Table(table) => {
            let entries = table
                .iter()
                .map(|(name, value)| Some((name.get_ref().to_string(), plain(value.get_ref())?)));
            toml::Value::Table(entries.collect::<Option<_>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(text: &str) -> Config {
        let (config, mistakes) = read(text, Path::new("x.toml"));
        assert_eq!(mistakes, [""; 0], "{text}");
        config
    }

    #[test]
    fn all_mistakes_are_named_with_their_lines() {
        let text = "contact = 5\nmemory = \"1G\"\n[politeness]\nratte = 5\nrate = \"fast\"\nper_host = -1\n\
                    [nonsense]\nx = 1\ny = 2\n[scope]\ndepth = 70000\ninclude = \"x\"\nrequisites = 1\n";
        let (config, mistakes) = read(text, Path::new("x.toml"));
        let said = [
            "line 1, `contact`: expected a text in quotes",
            "line 4, `ratte`: unknown key; did you mean rate?",
            "line 5, `rate`: expected a number",
            "line 6, `per_host`: expected a whole number from 0 to 65535",
            "line 7, `nonsense`: unknown key",
            "line 11, `depth`: expected a whole number from 0 to 65535",
            "line 12, `include`: expected a list of texts in quotes, as in [\"…\", \"…\"]",
            "line 13, `requisites`: expected true or false",
        ];
        assert_eq!(mistakes, said);
        assert_eq!(config.memory.as_deref(), Some("1G"));
    }

    #[test]
    fn what_is_no_toml_is_said_beside_what_is_wrong_otherwise() {
        let text = "contact = \nmemory = \"1G\"\n[scope\nratte = 1\n[fetch]\nworkers = \"x\"\n";
        let (_, mistakes) = read(text, Path::new("x.toml"));
        let all = mistakes.join("\n");
        assert!(
            all.contains("line 1, `contact`") && all.contains("line 6, `workers`"),
            "{all}"
        );
        for text in [
            "{",
            "a = \"b",
            "[x",
            "= 3",
            "seeds = [\n\"http://a/\",\n",
            "\u{0}",
        ] {
            let (_, mistakes) = read(text, Path::new("x.toml"));
            assert!(
                !mistakes.is_empty() && mistakes.len() < 9,
                "{text}: {mistakes:?}"
            );
        }
    }

    #[test]
    fn no_mistake_tells_a_value() {
        let text = "contact = \"secret\nmemory = [\"secret\"]\nratte = \"secret\"\nuser_agent = 'secret\" x\n";
        let (_, mistakes) = read(text, Path::new("x.toml"));
        assert!(
            !mistakes.is_empty() && !mistakes.join("\n").contains("secret"),
            "{mistakes:?}"
        );
    }

    #[test]
    fn the_names_of_the_design_are_understood_and_so_are_small_letters_and_ours() {
        let ours = good(
            "memory = \"1G\"\n[politeness]\nqueue_count = 3\nqueue_len = 4\nper_host = 2\nrate = 0.5\n\
             [spider]\nhost = \"127.0.0.1\"\nport = 1\nupdate_s = 2\n[limits]\ntotal_timeout_s = 0.003\nmax_body_bytes = 4\n\
             [store]\nhost = \"127.0.0.2\"\nport = 5\nresults_port = 6\ndir = \"d\"\n[daemons]\nkey_file = \"k\"\nmode = \"pull\"\n\
             [scope]\nkind = \"domain\"\n[budget]\nhost_pages = 7",
        );
        let design = "Memory = \"1G\"\nQueue_Count = 3\nQueue_Len = 4\nReq_Host_Concurrent = 2\nReq_Host_Per_Sec = 0.5\n\
             Spider_Host = \"127.0.0.1\"\nSpider_Port = 1\nTimeout_Update = 2000\nTimeout_Req = 3\nMax_Doc_Size = 4\n\
             Store_Host = \"127.0.0.2\"\nStore_Port = 5\nResults_Port = 6\nKey_File = \"k\"\nDir = \"d\"\nMode = \"pull\"\n\
             [crawl.scope]\nkind = \"domain\"\n[crawl.budget]\nmax_pages_per_host = 7";
        assert_eq!(good(design), ours);
        assert_eq!(
            good(
                &design
                    .replace("[crawl.", "[Crawl.")
                    .replace("Queue_Len", "queue_len")
            ),
            ours
        );
        let in_sections =
            "[politeness]\nQueue_Count = 3\nreq_host_per_sec = 0.5\n[limits]\nTimeout_Req_s = 1.5";
        let config = good(in_sections);
        assert_eq!(
            (config.politeness.queue_count, config.politeness.rate),
            (Some(3), Some(0.5))
        );
        assert_eq!(config.limits.total_timeout_s, Some(1.5));
    }

    #[test]
    fn one_setting_under_two_names_is_a_mistake() {
        let text =
            "Timeout_Req = 5\n[limits]\ntotal_timeout_s = 6\n[crawl.limits]\nTimeout_Req_s = 7";
        let (_, mistakes) = read(text, Path::new("x.toml"));
        let said = "line 3, `total_timeout_s`: the same setting as Timeout_Req (line 1 of x.toml); keep one of them";
        assert!(
            mistakes.len() == 2 && mistakes.iter().any(|it| it == said),
            "{mistakes:?}"
        );
    }
}
