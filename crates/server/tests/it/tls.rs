//! Certificates from files.

use std::fs;

use sapwood_server::net::tls::{TlsError, acceptor};

#[test]
fn certificates_are_taken_or_named() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let other =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).expect("it is written");
        path
    };
    let certificate = file("certificate", &made.cert.pem());
    let key = file("key", &made.signing_key.serialize_pem());
    let other_key = file("other", &other.signing_key.serialize_pem());
    let empty = file("empty", "");
    assert!(acceptor(&certificate, &key, None).is_ok());
    assert!(acceptor(&certificate, &key, Some(&certificate)).is_ok());
    let refused = |result: Result<_, TlsError>| result.err().map(|error| error.to_string());
    let swapped = refused(acceptor(&certificate, &other_key, None)).expect("another key");
    assert!(swapped.contains("cannot be used together"), "{swapped}");
    let cases = [
        acceptor(&empty, &key, None),
        acceptor(&certificate, &empty, None),
        acceptor(&certificate, &key, Some(&empty)),
    ];
    for result in cases {
        let words = refused(result).expect("an empty file");
        assert!(words.contains("empty holds no "), "{words}");
        assert!(!words.contains("BEGIN"), "{words}");
    }
}
