//! Mutations: bits, splices, cuts, repetitions, and words of the trade. All from one number, so that a
//! finding can be made again.

use orbweaver_testkit::Random;

/// What parsers trip over: numbers at the edge, delimiters, and words of the formats.
const WORDS: &[&[u8]] = &[
    b"\0",
    b"\r\n",
    b"\r\n\r\n",
    b"\n\n",
    b"\r",
    b" ",
    b"\t",
    b":",
    b";",
    b",",
    b"=",
    b"\"",
    b"'",
    b"<",
    b">",
    b"/",
    b"?",
    b"#",
    b"%",
    b"%00",
    b"%0d%0a",
    b"%2f",
    b"%",
    b"&",
    b"&amp;",
    b"&#",
    b"&#x10ffff;",
    b"<!--",
    b"-->",
    b"--!>",
    b"<![CDATA[",
    b"]]>",
    b"<script>",
    b"</script",
    b"<style>",
    b"<base href=",
    b"<meta charset=",
    b"url(",
    b"@import",
    b"\\",
    b"*/",
    b"/*",
    b"-1",
    b"0",
    b"18446744073709551616",
    b"ffffffffffffffff",
    b"99999999999999999999",
    b"NaN",
    b"1e999",
    b"HTTP/1.1 100 C\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"Content-Length: ",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Content-Encoding: br, zstd\r\n",
    b"0\r\n\r\n",
    b"\x1f\x8b\x08",
    b"\x28\xb5\x2f\xfd",
    b"User-agent: *\n",
    b"Disallow: /*",
    b"$",
    b"*",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"WARC/1.1\r\n",
    b"http://",
    b"//",
    b"@",
    b"[::1]",
    b"xn--",
    b"..",
    b"./",
    b"{",
    b"}",
    b"[",
    b"]",
    b"null",
];

/// The longest input that mutation makes. Work must grow with the input alone, so longer shows nothing new.
const MAX_LEN: usize = 64 << 10;

/// A child of one or two of the corpus.
pub(crate) fn child(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = corpus[random.index(corpus.len())].clone();
    for _ in 0..=random.index(6) {
        mutate(&mut input, corpus, random);
    }
    input.truncate(MAX_LEN);
    input
}

fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let at = random.index(input.len() + 1);
    match random.index(10) {
        0 | 1 if at < input.len() => input[at] ^= 1 << random.index(8),
        2 if at < input.len() => input[at] = random.any() as u8,
        3 => input.truncate(at),
        4 => {
            let end = (at + random.index(64)).min(input.len());
            input.drain(at..end);
        }
        5 => {
            let end = (at + random.index(64)).min(input.len());
            let piece = input[at..end].repeat(1 + random.index(200));
            input.splice(at..at, piece);
        }
        6 => {
            let other = &corpus[random.index(corpus.len())];
            let from = random.index(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        _ => {
            let word = WORDS[random.index(WORDS.len())];
            let end = match random.index(2) {
                0 => at,
                _ => (at + word.len()).min(input.len()),
            };
            let times = if random.index(20) == 0 { 1000 } else { 1 };
            input.splice(at..end, word.repeat(times));
        }
    }
    input.truncate(MAX_LEN);
}
