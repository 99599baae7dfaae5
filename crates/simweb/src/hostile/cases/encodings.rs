//! Content encodings: good, wrongly labelled, broken off, and explosive.

use crate::hostile::case::{Case, class::*};
use crate::hostile::script::{Act, Ask, PAGE, link, message, page, raw};

use super::pack;

fn coded(label: &str, body: &[u8]) -> Vec<Act> {
    raw(message(
        &format!("{PAGE}\r\nContent-Encoding: {label}"),
        body,
    ))
}

/// A coded page with a link for `/`, a plain one for the rest.
fn linked(ask: &Ask, label: &str, pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<Act> {
    match ask.target.as_str() {
        "/" => coded(label, &pack(link("/next").as_bytes())),
        _ => page("hello"),
    }
}

/// Half of something.
fn half(bytes: &[u8]) -> &[u8] {
    bytes.get(..bytes.len() / 2).unwrap_or_default()
}

/// Enough words that half of their compressed form holds some.
fn words() -> Vec<u8> {
    let line = |n: u32| {
        format!(
            "<p>{n:x} words and {} more.\n",
            n.wrapping_mul(2_654_435_761)
        )
    };
    (0..2000).map(line).collect::<String>().into_bytes()
}

/// Three times what a client keeps by default; more would only keep the server busy.
fn mountain() -> Vec<u8> {
    vec![b' '; 24 << 20]
}

pub(super) fn cases() -> Vec<Case> {
    let mut all = good();
    all.extend(labels());
    all.extend(broken());
    all.extend(bombs());
    all
}

fn good() -> Vec<Case> {
    let case = |name, does, script| Case::new(name, does, &[SUCCESS], script).leads_to("/next");
    vec![
        case("gzip", "gzip", |ask: &Ask| linked(ask, "gzip", pack::gzip)),
        case(
            "x-gzip",
            "gzip under its old name, in capitals",
            |ask: &Ask| linked(ask, "X-GZIP", pack::gzip),
        ),
        case("deflate-zlib", "deflate as the RFC says", |ask: &Ask| {
            linked(ask, "deflate", pack::zlib)
        }),
        case("deflate-raw", "deflate as some servers say", |ask: &Ask| {
            linked(ask, "deflate", pack::deflate)
        }),
        case("brotli", "brotli", |ask: &Ask| {
            linked(ask, "br", pack::brotli)
        }),
        case("zstd", "zstd", |ask: &Ask| linked(ask, "zstd", pack::zstd)),
        case("stacked", "gzip in zstd", |ask: &Ask| {
            linked(ask, "gzip, zstd", |page| pack::zstd(&pack::gzip(page)))
        }),
        case("two-fields", "two fields, one coding each", |ask: &Ask| {
            linked(ask, "deflate\r\nContent-Encoding: br", |page| {
                pack::brotli(&pack::zlib(page))
            })
        }),
        case("identity", "identity and nothing", |ask: &Ask| {
            linked(ask, "identity, ,", <[u8]>::to_vec)
        }),
        case("members", "a page in two gzip members", |ask: &Ask| {
            linked(ask, "gzip", |page| {
                [pack::gzip(b"<p>"), pack::gzip(page)].concat()
            })
        }),
        case(
            "trailing-noise",
            "noise after the gzip member",
            |ask: &Ask| {
                linked(ask, "gzip", |page| {
                    [pack::gzip(page), vec![0; 100]].concat()
                })
            },
        ),
    ]
}

fn labels() -> Vec<Case> {
    vec![
        Case::new(
            "gzip-is-plain",
            "a plain page labelled gzip",
            &[DECODE],
            |_| coded("gzip", link("/x").as_bytes()),
        ),
        Case::new("gzip-is-zlib", "zlib labelled gzip", &[DECODE], |_| {
            coded("gzip", &pack::zlib(&words()))
        }),
        Case::new(
            "br-is-gzip",
            "gzip labelled br",
            &[DECODE, TRUNCATED],
            |_| coded("br", &pack::gzip(&words())),
        ),
        Case::new(
            "zstd-is-plain",
            "a plain page labelled zstd",
            &[DECODE],
            |_| coded("zstd", &words()),
        ),
        Case::new("unknown", "a coding nobody knows", &[DECODE], |_| {
            coded("x-foo", &words())
        }),
        Case::new("unlabelled", "gzip without a label", &[SUCCESS], |_| {
            page(pack::gzip(&words()))
        }),
        Case::new("too-many", "twenty codings", &[DECODE], |_| {
            coded(&"gzip, ".repeat(20), &pack::gzip(b"x"))
        }),
        Case::new(
            "many-identities",
            "ten thousand times identity",
            &[SUCCESS],
            |_| coded(&"identity,".repeat(5000), b"hello"),
        ),
        Case::new("nothing", "no body labelled gzip", &[EMPTY], |_| {
            coded("gzip", b"")
        }),
    ]
}

fn broken() -> Vec<Case> {
    vec![
        Case::new("gzip-half", "half of a gzip member", &[TRUNCATED], |_| {
            coded("gzip", half(&pack::gzip(&words())))
        }),
        Case::new(
            "deflate-half",
            "half of a zlib stream",
            &[TRUNCATED],
            |_| coded("deflate", half(&pack::zlib(&words()))),
        ),
        Case::new(
            "brotli-half",
            "half of a brotli stream",
            &[TRUNCATED],
            |_| coded("br", half(&pack::brotli(&words()))),
        ),
        Case::new(
            "zstd-half",
            "half of a zstd frame",
            &[DECODE, TRUNCATED],
            |_| coded("zstd", half(&pack::zstd(&words()))),
        ),
        Case::new(
            "gzip-checksum",
            "a gzip member with a wrong checksum",
            &[TRUNCATED, SUCCESS],
            |_| {
                let mut member = pack::gzip(&words());
                let at = member.len().saturating_sub(8);
                if let Some(byte) = member.get_mut(at) {
                    *byte ^= 0xff;
                }
                coded("gzip", &member)
            },
        ),
        Case::new(
            "gzip-flags",
            "reserved flags in a gzip header",
            &[DECODE],
            |_| coded("gzip", &[0x1f, 0x8b, 8, 0xe0, 0, 0, 0, 0, 0, 3, 1, 2, 3]),
        ),
        Case::new(
            "gzip-header-only",
            "ten bytes of a gzip header",
            &[DECODE],
            |_| coded("gzip", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]),
        ),
        Case::new(
            "zstd-window",
            "a zstd frame that asks for 2 TiB",
            &[DECODE],
            |_| {
                coded(
                    "zstd",
                    &[pack::zstd_begin_window(31 << 3), pack::zstd_run(b'x')].concat(),
                )
            },
        ),
        Case::new(
            "zstd-dictionary",
            "a zstd frame with a dictionary",
            &[DECODE],
            |_| coded("zstd", &[0x28, 0xb5, 0x2f, 0xfd, 3, 0, 1, 2, 3, 4, 1, 0, 0]),
        ),
        Case::new(
            "brotli-large-window",
            "the brotli variant with a window of 1 GiB",
            &[DECODE],
            |_| coded("br", &[0x11, 0x1e, 0, 0, 0, 0, 0, 0]),
        ),
        Case::new(
            "brotli-noise",
            "noise labelled br",
            &[DECODE, TRUNCATED],
            |_| {
                let noise = |n: u32| (n.wrapping_mul(2_654_435_761) >> 13) as u8;
                coded("br", &(7..5000).map(noise).collect::<Vec<u8>>())
            },
        ),
    ]
}

fn bombs() -> Vec<Case> {
    let case = |name, does, script| Case::new(name, does, &[TRUNCATED], script).requests(1);
    vec![
        case("bomb-gzip", "24 MiB of blanks in gzip", |_| {
            coded("gzip", &pack::gzip(&mountain()))
        }),
        case("bomb-deflate", "24 MiB of blanks in deflate", |_| {
            coded("deflate", &pack::zlib(&mountain()))
        }),
        case("bomb-zstd", "2 GB of one letter in zstd", |_| {
            coded(
                "zstd",
                &[pack::zstd_begin(), pack::zstd_run(b'x').repeat(16_384)].concat(),
            )
        }),
        case("bomb-stacked", "gzip of gzip of 24 MiB", |_| {
            coded("gzip, gzip", &pack::gzip(&pack::gzip(&mountain())))
        }),
        case("bomb-zstd-stacked", "zstd frames in zstd runs", |_| {
            let inner = [pack::zstd_begin(), pack::zstd_run(b'x').repeat(16_384)].concat();
            coded("zstd, gzip", &pack::gzip(&inner))
        }),
        Case::new(
            "bomb-robots",
            "20 MiB of comment in a gzip robots.txt",
            &[SUCCESS],
            |_| page("hello"),
        )
        .robots(|_| {
            let body = pack::gzip(&b"# comment\n".repeat(2 << 20));
            raw(message(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip",
                body,
            ))
        }),
        Case::new(
            "bomb-error",
            "404 with 24 MiB in gzip",
            &[HTTP_ERROR],
            |_| {
                raw(message(
                    "HTTP/1.1 404 No\r\nContent-Encoding: gzip",
                    pack::gzip(&mountain()),
                ))
            },
        )
        .requests(1),
    ]
}
