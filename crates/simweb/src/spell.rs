//! One place, many spellings: how links are written in the wild.
//!
//! Every spelling here resolves, by the URL standard, to the canonical URL of its place once the
//! fragment is dropped and percent escapes are in upper case. Nothing is spelled that only looks the
//! same: `~` for `%7E` would be another URL.

use crate::layout::Layout;
use crate::place::Place;
use crate::rng::Rng;

/// What relative links on a page are relative to.
pub(crate) struct Base {
    host: u32,
    /// Path up to and with its last slash.
    dir: Vec<u8>,
}

impl Base {
    /// The base of a page without a `<base>` element.
    pub(crate) fn of(layout: &Layout, place: Place) -> Self {
        let mut dir = Vec::with_capacity(64);
        layout.write_target(&mut dir, place.host, place.what);
        dir.truncate(directory(&dir).len());
        Self {
            host: place.host,
            dir,
        }
    }

    /// The root of a host, which a page names in its `<base>` element.
    pub(crate) fn root(host: u32) -> Self {
        Self {
            host,
            dir: b"/".to_vec(),
        }
    }
}

/// Writes a link's value in one of its spellings, before HTML escaping and quoting.
pub(crate) fn write(
    layout: &Layout,
    out: &mut Vec<u8>,
    target: &mut Vec<u8>,
    base: &Base,
    to: Place,
    rng: &mut Rng,
) {
    target.clear();
    layout.write_target(target, to.host, to.what);
    let choice = if to.host == base.host {
        rng.below(16)
    } else {
        10 + rng.below(6)
    };
    match choice {
        0..3 => out.extend_from_slice(target),
        3..5 => relative(out, &base.dir, target),
        5 => dotted(out, &base.dir, target),
        6 => through_a_detour(out, target, b"/old/../"),
        7 => through_a_detour(out, target, b"/old/%2E%2e/./"),
        8 => backslashes(out, target),
        9 => lower_escapes(out, target),
        10 => absolute(layout, out, to.host, b"//", target, Form::Canonical),
        11 => absolute(layout, out, to.host, b"HTTP://", target, Form::UpperCase),
        12 => absolute(layout, out, to.host, b"Http://", target, Form::Unicode),
        13 => absolute(layout, out, to.host, b"http://", target, Form::Port),
        _ => absolute(layout, out, to.host, b"http://", target, Form::Canonical),
    }
    if rng.below(8) == 0 {
        out.extend_from_slice(b"#section-2");
    }
}

/// Writes the value of a Location header: canonical, from the root, or relative.
pub(crate) fn write_location(
    layout: &Layout,
    out: &mut Vec<u8>,
    base: &Base,
    to: Place,
    rng: &mut Rng,
) {
    let mut target = Vec::with_capacity(64);
    layout.write_target(&mut target, to.host, to.what);
    match rng.below(3) {
        0 if to.host == base.host => out.extend_from_slice(&target),
        1 if to.host == base.host => relative(out, &base.dir, &target),
        _ => layout.write_url(out, to),
    }
}

/// How the host of an absolute link is written.
#[derive(Clone, Copy)]
enum Form {
    Canonical,
    UpperCase,
    /// As a reader would write it, in capitals where it begins a word.
    Unicode,
    /// With the port spelled out even when it is the scheme's own.
    Port,
}

fn absolute(
    layout: &Layout,
    out: &mut Vec<u8>,
    host: u32,
    scheme: &[u8],
    target: &[u8],
    form: Form,
) {
    let Some(name) = layout.name(host) else {
        return;
    };
    out.extend_from_slice(scheme);
    let authority = name.authority.as_bytes();
    match (form, &name.unicode) {
        (Form::Unicode, Some(unicode)) => {
            let port = authority.get(name.host.len()..).unwrap_or_default();
            out.extend_from_slice(unicode.as_bytes());
            out.extend_from_slice(port);
        }
        (Form::UpperCase, _) => out.extend(authority.iter().map(u8::to_ascii_uppercase)),
        (Form::Port, _) if layout.port == 80 => {
            out.extend_from_slice(authority);
            out.extend_from_slice(b":80");
        }
        _ => out.extend_from_slice(authority),
    }
    // The path of a root may be left out altogether.
    if !(target == b"/" && matches!(form, Form::UpperCase | Form::Port)) {
        out.extend_from_slice(target);
    }
}

fn relative(out: &mut Vec<u8>, dir: &[u8], target: &[u8]) {
    let to = directory(target);
    let shared = dir
        .iter()
        .zip(to)
        .take_while(|(a, b)| a == b)
        .enumerate()
        .filter(|(_, (byte, _))| **byte == b'/')
        .last()
        .map_or(0, |(at, _)| at + 1);
    let up = dir.iter().skip(shared).filter(|b| **b == b'/').count();
    let rest = target.get(shared..).unwrap_or_default();
    if up == 0 && rest.is_empty() {
        out.extend_from_slice(b"./");
    }
    for _ in 0..up {
        out.extend_from_slice(b"../");
    }
    out.extend_from_slice(rest);
}

fn dotted(out: &mut Vec<u8>, dir: &[u8], target: &[u8]) {
    out.extend_from_slice(b"./");
    relative(out, dir, target);
}

fn through_a_detour(out: &mut Vec<u8>, target: &[u8], detour: &[u8]) {
    out.extend_from_slice(detour);
    out.extend_from_slice(target.get(1..).unwrap_or_default());
}

/// The standard reads a backslash in the path of an http URL as a slash; in a query it does not.
fn backslashes(out: &mut Vec<u8>, target: &[u8]) {
    let path = target.len() - query_len(target);
    out.extend(target.iter().enumerate().map(|(at, byte)| match byte {
        b'/' if at < path => b'\\',
        other => *other,
    }));
}

fn lower_escapes(out: &mut Vec<u8>, target: &[u8]) {
    let mut digits = 0;
    for byte in target {
        out.push(if digits > 0 {
            byte.to_ascii_lowercase()
        } else {
            *byte
        });
        digits = if *byte == b'%' {
            2
        } else {
            i32::max(digits - 1, 0)
        };
    }
}

/// The path up to and with its last slash.
fn directory(target: &[u8]) -> &[u8] {
    let path = target.len() - query_len(target);
    let path = target.get(..path).unwrap_or_default();
    let end = path.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
    path.get(..end).unwrap_or_default()
}

/// Bytes from the question mark on.
fn query_len(target: &[u8]) -> usize {
    target
        .iter()
        .position(|b| *b == b'?')
        .map_or(0, |at| target.len() - at)
}
