#!/usr/bin/env python3
"""Reads a crawl directory with warcio and pywb and compares what they see with what we wrote.

usage: check_warc.py DIR [EXPECTED]

DIR has finished files in warc/ and cdxj/. EXPECTED has lines `url<TAB>sha1`, the SHA-1 in hexadecimal of the
document that the server sent, without transfer and content encoding; each must come back through
pywb. Without it the documents come from warcio, at most SAMPLE of them.

Needs warcio and pywb. Prints what differs, one line each; the exit status is 1 when anything does.
"""

import collections
import contextlib
import gzip
import hashlib
import http.client
import io
import os
import socket
import subprocess
import sys
import tempfile
import time
import zlib

from pywb.indexer.cdxindexer import write_multi_cdx_index
from warcio.archiveiterator import ArchiveIterator
from warcio.timeutils import iso_date_to_timestamp

SAMPLE = 300
START_SECONDS = 60

problems = 0


def problem(*words):
    global problems
    problems += 1
    print("error:", *words)


def names(directory, suffix):
    return sorted(name for name in os.listdir(directory) if name.endswith(suffix))


def tool(name):
    """A program that pip installed beside this Python."""
    return os.path.join(os.path.dirname(sys.executable), name)


def check_digests(warcs):
    """warcio's own check: it verifies every block and payload digest but those of revisits."""
    for path in warcs:
        run = subprocess.run([tool("warcio"), "check", path], capture_output=True, text=True)
        if run.returncode != 0 or run.stdout.strip() or run.stderr.strip():
            problem("warcio check", path, run.stdout.strip(), run.stderr.strip())


def iterate(path, payloads):
    """Reads one file with warcio. Returns its documents, (url, timestamp) → SHA-1, its revisits,
    (url, timestamp) → payload digest, and how many records of each kind it has. `payloads` learns which
    document belongs to which payload digest."""
    documents, revisits = {}, {}
    kinds = collections.Counter()
    main = None
    with open(path, "rb") as stream:
        iterator = ArchiveIterator(stream, check_digests="raise")
        for record in iterator:
            kind = record.rec_type
            field = record.rec_headers.get_header
            kinds[kind] += 1
            if record.rec_headers.protocol != "WARC/1.1":
                problem(path, "not WARC/1.1:", record.rec_headers.protocol)
            if kind in ("response", "revisit"):
                main = field("WARC-Record-ID")
            elif kind in ("request", "metadata") and field("WARC-Concurrent-To") != main:
                problem(path, kind, "does not follow the record it belongs to")
            document = record.content_stream().read() if kind != "revisit" else None
            if kind in ("response", "revisit") and record.http_headers.get_statuscode() == "200":
                key = (field("WARC-Target-URI"), iso_date_to_timestamp(field("WARC-Date")))
                if kind == "revisit":
                    revisits[key] = field("WARC-Payload-Digest")
                    continue
                # warcio knows some encodings only; what it leaves encoded cannot be compared here.
                encoding = record.http_headers.get_header("Content-Encoding", "").lower()
                if encoding in ("", "identity", "gzip") and not field("WARC-Truncated"):
                    documents[key] = hashlib.sha1(document).hexdigest()
                    payloads[field("WARC-Payload-Digest")] = documents[key]
        if iterator.err_count:
            problem(path, "warcio counts", iterator.err_count, "errors")
    if kinds["warcinfo"] != 1:
        problem(path, "has", kinds["warcinfo"], "warcinfo records")
    if kinds["metadata"] != kinds["response"] + kinds["revisit"]:
        problem(path, "records do not form groups:", dict(kinds))
    return documents, revisits, kinds


def compare_index(warc, cdxj):
    """Our index must be, byte for byte, the sorted one that pywb makes of the same file."""
    theirs = io.BytesIO()
    write_multi_cdx_index_to(theirs, warc)
    theirs = theirs.getvalue().decode().splitlines()
    with open(cdxj, encoding="utf-8", newline="\n") as lines:
        ours = lines.read().splitlines()
    if ours != sorted(ours):
        problem(cdxj, "is not sorted")
    for line in sorted(set(theirs) - set(ours)):
        problem(cdxj, "lacks", line)
    for line in sorted(set(ours) - set(theirs)):
        problem(cdxj, "has", line)
    return len(ours)


def write_multi_cdx_index_to(out, warc):
    """pywb's indexer writes to a file or to standard output."""
    with tempfile.NamedTemporaryFile(suffix=".cdxj") as target:
        write_multi_cdx_index(target.name, [warc], cdxj=True, sort=True)
        with open(target.name, "rb") as made:
            out.write(made.read())


def free_port():
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def wayback(directory):
    """pywb on a free port over the directory."""
    with tempfile.TemporaryDirectory() as home:
        with open(os.path.join(home, "config.yaml"), "w", encoding="utf-8") as config:
            config.write("debug: false\ncollections:\n  crawl:\n")
            config.write(f"    index_paths: {os.path.join(directory, 'cdxj')}/\n")
            config.write(f"    archive_paths: {os.path.join(directory, 'warc')}/\n")
        port = free_port()
        log = open(os.path.join(home, "log"), "w+", encoding="utf-8")
        server = subprocess.Popen(
            [tool("wayback"), "--bind", "127.0.0.1", "-p", str(port)],
            cwd=home, stdout=log, stderr=log)
        try:
            wait_for(server, port, log)
            yield port
        finally:
            server.terminate()
            server.wait()
            log.close()


def wait_for(server, port, log):
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                sys.exit("pywb did not start:\n" + log.read())
            time.sleep(0.1)


def replay(port, timestamp, url):
    """The document as pywb gives it back, decoded; none when it answers anything but 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.putrequest("GET", f"/crawl/{timestamp}id_/{url}", skip_accept_encoding=True)
        connection.endheaders()
        answer = connection.getresponse()
        try:
            body = answer.read()
        except http.client.IncompleteRead as cut:
            body = cut.partial
        if answer.status != 200:
            return answer.status, None
        encoding = answer.getheader("Content-Encoding", "").lower()
        if encoding == "gzip":
            body = gzip.decompress(body)
        elif encoding == "deflate":
            body = zlib.decompress(body)
        elif encoding == "br":
            import brotli
            body = brotli.decompress(body)
        return 200, body
    finally:
        connection.close()


def compare_replay(directory, expected):
    with wayback(directory) as port:
        for (url, timestamp), digest in expected:
            status, body = replay(port, timestamp, url)
            if body is None:
                problem("pywb answers", status, "for", timestamp, url)
            elif hashlib.sha1(body).hexdigest() != digest:
                problem("pywb gives other bytes for", timestamp, url)


def read_expected(path):
    with open(path, encoding="utf-8") as lines:
        pairs = [line.rstrip("\n").split("\t") for line in lines if line.strip()]
    # An empty timestamp asks pywb for the newest capture.
    return [((url, ""), digest.lower()) for url, digest in pairs]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    directory = os.path.abspath(sys.argv[1])
    warc, cdxj = os.path.join(directory, "warc"), os.path.join(directory, "cdxj")
    files = names(warc, ".warc.gz")
    if not files:
        sys.exit(f"no finished WARC file in {warc}")
    documents, revisits, payloads = {}, {}, {}
    kinds, lines = collections.Counter(), 0
    check_digests([os.path.join(warc, name) for name in files])
    for name in files:
        found, again, counted = iterate(os.path.join(warc, name), payloads)
        documents.update(found)
        revisits.update(again)
        kinds.update(counted)
        index = os.path.join(cdxj, name.replace(".warc.gz", ".cdxj"))
        lines += compare_index(os.path.join(warc, name), index)
    if len(sys.argv) == 3:
        expected = read_expected(sys.argv[2])
    else:
        documents.update({key: payloads[digest] for key, digest in revisits.items() if digest in payloads})
        found = sorted(documents.items())
        expected = found[:: max(1, len(found) // SAMPLE)][:SAMPLE]
    compare_replay(directory, expected)
    print(f"{len(files)} files, {sum(kinds.values())} records, {kinds['revisit']} revisits, "
          f"{lines} index lines, {len(expected)} documents replayed, {problems} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
