//! Real ports: who gets in, who does not, and how long a stranger may try.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use orbweaver_wire::{
    Command, Connection, Data, Decoded, Followed, Follower, HttpCode, Key, Lines, Port,
    PortOptions, Record, Service, WireError,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A line that belongs on the port of the line protocol, where there is no key.
const WORD: &[u8] = b"7 1 ::1 http://a/\n";

const SECRET: &[u8] = b"thirty-two bytes of secret, or more";

fn port(service: Service, secret: Option<&[u8]>) -> Port {
    let key = secret.map(|secret| Key::new(secret).unwrap());
    Port::new(service, key.as_ref(), PortOptions::default()).unwrap()
}

/// Listens and answers with what it hears, whoever gets in.
async fn echo(port: &Port) -> u16 {
    let mut listener = port.listen("127.0.0.1", 0).await.unwrap();
    let address = listener.address();
    tokio::spawn(async move {
        loop {
            if let Ok(mut connection) = listener.accept().await {
                tokio::spawn(async move {
                    let mut bytes = [0; 100];
                    while let Ok(count @ 1..) = connection.read(&mut bytes).await {
                        connection.write_all(&bytes[..count]).await.unwrap();
                        connection.flush().await.unwrap();
                    }
                });
            }
        }
    });
    address.port()
}

/// What comes back for a word; none when the other side does not let it in.
async fn ask(port: &Port, at: u16) -> Option<Vec<u8>> {
    let mut connection: Connection = port.connect("127.0.0.1", at).await.ok()?;
    connection.write_all(WORD).await.ok()?;
    connection.flush().await.ok()?;
    let mut heard = vec![0; WORD.len()];
    connection.read_exact(&mut heard).await.ok()?;
    Some(heard)
}

#[tokio::test]
async fn the_same_key_opens_and_nothing_else_does() {
    let keyed = port(Service::Store, Some(SECRET));
    let at = echo(&keyed).await;
    assert_eq!(ask(&keyed, at).await.as_deref(), Some(WORD));
    // An editor's line end is no other key.
    let again = port(
        Service::Store,
        Some(b"thirty-two bytes of secret, or more\n"),
    );
    assert!(ask(&again, at).await.is_some());
    let other = port(Service::Store, Some(b"thirty-two bytes of secret, or less"));
    assert!(matches!(
        other.connect("127.0.0.1", at).await,
        Err(WireError::Handshake { .. })
    ));
    assert_eq!(ask(&port(Service::Line, Some(SECRET)), at).await, None);
    // Plain words are answered with an alert of TLS, if at all.
    assert_ne!(
        ask(&port(Service::Store, None), at).await.as_deref(),
        Some(WORD)
    );
}

#[tokio::test]
async fn without_a_key_loopback_is_all_there_is() {
    let plain = port(Service::Line, None);
    let at = echo(&plain).await;
    assert!(ask(&plain, at).await.is_some());
    // A keyed client does not fall back to plain words.
    assert_eq!(ask(&port(Service::Line, Some(SECRET)), at).await, None);
    for host in ["0.0.0.0", "::", "[::]", "192.0.2.1", "::ffff:192.0.2.1"] {
        let refused = plain.listen(host, 0).await;
        assert!(matches!(refused, Err(WireError::NeedsKey { .. })), "{host}");
        let refused = plain.connect(host, 9).await;
        assert!(matches!(refused, Err(WireError::NeedsKey { .. })), "{host}");
    }
    assert!(
        port(Service::Line, Some(SECRET))
            .listen("0.0.0.0", 0)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_is_cut() {
    let options = PortOptions {
        admission: Duration::from_millis(50),
        ..PortOptions::default()
    };
    let key = Key::new(SECRET).unwrap();
    let keyed = Port::new(Service::Line, Some(&key), options).unwrap();
    let mut listener = keyed.listen("127.0.0.1", 0).await.unwrap();
    let mut silent = TcpStream::connect(listener.address()).await.unwrap();
    let error = listener.accept().await.unwrap_err();
    // Nobody has said anything about a key.
    assert!(matches!(error, WireError::Slow { .. }), "{error}");
    assert!(!error.to_string().contains("Key_File"), "{error}");
    assert_eq!(silent.read(&mut [0; 10]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn more_connections_than_places_are_closed() {
    let options = PortOptions {
        max_connections: 1,
        ..PortOptions::default()
    };
    let plain = Port::new(Service::Line, None, options).unwrap();
    let at = echo(&plain).await;
    let mut first = plain.connect("127.0.0.1", at).await.unwrap();
    first.write_all(WORD).await.unwrap();
    let mut back = [0; WORD.len()];
    first.read_exact(&mut back).await.unwrap();
    let mut second = TcpStream::connect(("127.0.0.1", at)).await.unwrap();
    second.write_all(WORD).await.unwrap();
    assert_eq!(second.read(&mut [0; 1]).await.unwrap_or(0), 0);
    first.write_all(b"x").await.unwrap();
    first.read_exact(&mut [0]).await.unwrap();
}

/// Whoever has the key gets in, however many without it are there.
#[tokio::test]
async fn a_crowd_without_the_key_keeps_nobody_out() {
    let keyed = port(Service::Line, Some(SECRET));
    let at = echo(&keyed).await;
    let mut crowd = Vec::new();
    for number in 0..300 {
        let mut stranger = TcpStream::connect(("127.0.0.1", at)).await.unwrap();
        if number % 2 == 0 {
            // The beginning of a handshake that does not go on.
            stranger.write_all(&[0x16, 3, 1]).await.unwrap();
        }
        crowd.push(stranger);
    }
    assert_eq!(ask(&keyed, at).await.as_deref(), Some(WORD));
    // Those for which there was no room any more were closed.
    let mut closed = 0;
    while closed < 300 - 256 + 1 {
        closed = 0;
        for stranger in &crowd {
            closed += usize::from(is_over(stranger));
        }
        tokio::task::yield_now().await;
    }
}

fn is_over(stream: &TcpStream) -> bool {
    match stream.try_read(&mut [0; 10]) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

/// What a browser can be made to send reaches nobody, and says so.
#[tokio::test]
async fn a_web_page_is_not_heard() {
    for service in [Service::Line, Service::Store, Service::Results] {
        let plain = port(service, None);
        let mut listener = plain.listen("127.0.0.1", 0).await.unwrap();
        let mut page = TcpStream::connect(listener.address()).await.unwrap();
        let record = result().encode().unwrap();
        let head = b"POST / HTTP/1.1\r\nHost: x\r\n\r\n1 1 ::1 http://a/\nFOLLOW 0\n";
        page.write_all(&[&head[..], &record].concat())
            .await
            .unwrap();
        let mut connection = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        let error = connection.read_to_end(&mut heard).await.unwrap_err();
        assert!(heard.is_empty());
        let why = WireError::within(&error).unwrap();
        assert!(matches!(why, WireError::Stranger { .. }), "{why}");
        assert!(why.to_string().contains("HTTP"), "{why}");
        // The same words of a peer come through whole, however they are cut.
        let words: &[u8] = match service {
            Service::Line => WORD,
            Service::Results => b"FOLLOW 17\n",
            Service::Store => &record,
        };
        let mut peer = TcpStream::connect(listener.address()).await.unwrap();
        peer.set_nodelay(true).unwrap();
        let mut connection = listener.accept().await.unwrap();
        let mut heard = vec![0; words.len()];
        let hear = connection.read_exact(&mut heard);
        let say = async {
            for byte in words {
                peer.write_all(&[*byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let (read, ()) = tokio::join!(hear, say);
        read.unwrap();
        assert_eq!(heard, words);
    }
}

#[test]
fn a_key_file_must_be_secret_and_long_enough() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("key");
    let write = |bytes: &[u8], mode| {
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(bytes).unwrap();
        file.set_permissions(std::fs::Permissions::from_mode(mode))
            .unwrap();
    };
    write(SECRET, 0o600);
    Key::read(&path).unwrap();
    write(SECRET, 0o640);
    let error = Key::read(&path).unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
    write(
        b"short\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
        0o600,
    );
    assert!(matches!(Key::read(&path), Err(WireError::ShortKey)));
    // Random bytes may end in a line end; with an editor's, of either kind, the key is the same.
    let random = [&[7; 31][..], b"\n"].concat();
    write(&random, 0o600);
    Key::read(&path).unwrap();
    write(&[&random[..], b"\r\n"].concat(), 0o600);
    Key::read(&path).unwrap();
    assert!(Key::read(place.path()).is_err());
    assert!(!format!("{:?}", Key::new(SECRET).unwrap()).contains("secret"));
}

/// A store that hears FOLLOW, sends one entry, and closes; and so on.
#[tokio::test]
async fn a_follower_goes_on_where_it_was() {
    let plain = port(Service::Results, None);
    let mut listener = plain.listen("127.0.0.1", 0).await.unwrap();
    let at = listener.address().port();
    let served = tokio::spawn(async move {
        let mut heard = Vec::new();
        for position in [1_u64, 2] {
            let mut connection = listener.accept().await.unwrap();
            let mut lines = Lines::new();
            let mut bytes = [0; 64];
            let follow = loop {
                let count = connection.read(&mut bytes).await.unwrap();
                lines.feed(&bytes[..count]);
                if let Some(line) = lines.next().unwrap() {
                    break Command::read(line).unwrap();
                }
            };
            heard.push(follow);
            let mut entry = position.to_be_bytes().to_vec();
            entry.extend(result().encode().unwrap());
            connection.write_all(&entry).await.unwrap();
            if position == 2 {
                while lines.next().unwrap().is_none() {
                    let count = connection.read(&mut bytes).await.unwrap();
                    lines.feed(&bytes[..count]);
                    heard.extend(Command::read(lines.rest().trim_ascii_end()));
                }
            }
        }
        heard
    });
    let source = orbweaver_wire::follower::Source {
        host: "127.0.0.1".into(),
        port: at,
        max_data: 100,
    };
    let mut follower = Follower::start(plain, source, 0);
    let mut positions = Vec::new();
    while positions.len() < 2 {
        // Bounded, so that a broken decoder fails here instead of waiting for ever.
        let next = tokio::time::timeout(Duration::from_secs(60), follower.next());
        if let Followed::Result(position, decoded) = next.await.unwrap().unwrap() {
            assert_eq!(decoded, Decoded::Record(result()));
            positions.push(position);
        }
    }
    follower.have(2);
    assert_eq!(positions, [1, 2]);
    let heard = served.await.unwrap();
    let wanted = [Command::Follow(0), Command::Follow(1), Command::Have(2)];
    assert_eq!(heard, wanted);
}

fn result() -> Record {
    Record {
        doc_id: 1,
        success: true,
        outcome: orbweaver_model::OutcomeClass::Success,
        cut: None,
        http: HttpCode::of(Some(200)),
        kind: Data::Body,
        millis: 1,
        url: "http://a/".into(),
        new_url: String::new(),
        data: bytes::Bytes::from_static(b"x"),
    }
}
