//! Where a server is, and what a client says of itself there.

use std::fmt;
use std::path::PathBuf;

/// The port of a server of which the address names none.
const PORT: u16 = 6379;

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The kind of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Socket {
    Tcp { host: String, port: u16 },
    Tls { host: String, port: u16 },
    Unix(PathBuf),
}

/// A server, a user of it, and a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) socket: Socket,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) database: u32,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            Socket::Tcp { host, port } | Socket::Tls { host, port } if host.contains(':') => {
                write!(f, "[{host}]:{port}")
            }
            Socket::Tcp { host, port } | Socket::Tls { host, port } => write!(f, "{host}:{port}"),
            Socket::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// An address as it is typed: `redis://user:password@host:port/0`, `rediss://...` for TLS,
/// `unix:///path?db=0`, or `host:port`. Messages do not repeat it, since it may have a password.
pub(crate) fn parse(text: &str) -> Result<Address, String> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("redis", text));
    let (about, place) = match rest.rsplit_once('@') {
        Some((about, place)) => (Some(about), place),
        None => (None, rest),
    };
    let (user, password) = match about.map(|about| about.split_once(':').unwrap_or((about, ""))) {
        None => (None, None),
        Some((user, password)) => {
            let filled = |text: &str| (!text.is_empty()).then(|| decoded(text)).transpose();
            (filled(user)?, filled(password)?.map(Secret))
        }
    };
    let (place, query) = place.split_once('?').unwrap_or((place, ""));
    let is_tls = match scheme {
        "redis" => false,
        "rediss" => true,
        "unix" | "redis+unix" => {
            let database = match query.split_once('=') {
                None if query.is_empty() => 0,
                Some(("db", number)) => database(number)?,
                _ => return Err("only `?db=NUMBER` may follow a path".to_owned()),
            };
            if place.is_empty() {
                return Err("a path is expected, as in unix:///run/redis.sock".to_owned());
            }
            let socket = Socket::Unix(PathBuf::from(decoded(place)?));
            return Ok(Address { socket, user, password, database });
        }
        _ => return Err("redis://, rediss:// or unix:// is expected".to_owned()),
    };
    if !query.is_empty() {
        return Err("nothing may follow a `?`".to_owned());
    }
    let (place, number) = place.split_once('/').unwrap_or((place, ""));
    let database = if number.is_empty() { 0 } else { database(number)? };
    let (host, port) = match place.strip_prefix('[').and_then(|place| place.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = match port {
        None => PORT,
        Some(port) => port.parse().map_err(|_| "the port is not a number up to 65535")?,
    };
    let host = if host.is_empty() { "127.0.0.1".to_owned() } else { decoded(host)? };
    let socket = if is_tls { Socket::Tls { host, port } } else { Socket::Tcp { host, port } };
    Ok(Address { socket, user, password, database })
}

fn database(number: &str) -> Result<u32, String> {
    number.parse().map_err(|_| "the database is not a number".to_owned())
}

/// Text whose `%40` stands for a byte.
fn decoded(text: &str) -> Result<String, String> {
    const EXPECTED: &str = "two hexadecimal digits are expected behind %";
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|it| it.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or(EXPECTED)?);
        rest = &behind[2..];
    }
    String::from_utf8(bytes).map_err(|_| "the address is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Socket {
        Socket::Tcp { host: host.to_owned(), port }
    }

    #[test]
    fn addresses_are_read() {
        let tls = Socket::Tls { host: "h".to_owned(), port: 1 };
        let unix = |path: &str| Socket::Unix(path.into());
        for (text, socket, user, password, database) in [
            ("redis://", tcp("127.0.0.1", 6379), None, None, 0),
            ("redis://h", tcp("h", 6379), None, None, 0),
            ("h:7", tcp("h", 7), None, None, 0),
            ("localhost", tcp("localhost", 6379), None, None, 0),
            ("redis://h:7/3", tcp("h", 7), None, None, 3),
            ("redis://:p%40%3a@h/", tcp("h", 6379), None, Some("p@:"), 0),
            ("redis://u:p:q@h:7/1", tcp("h", 7), Some("u"), Some("p:q"), 1),
            ("redis://u@h", tcp("h", 6379), Some("u"), None, 0),
            ("rediss://u:p@h:1", tls, Some("u"), Some("p"), 0),
            ("redis://[::1]:7/2", tcp("::1", 7), None, None, 2),
            ("redis://[::1]", tcp("::1", 6379), None, None, 0),
            ("unix:///run/a.sock", unix("/run/a.sock"), None, None, 0),
            ("unix://u:p@/a%20b?db=2", unix("/a b"), Some("u"), Some("p"), 2),
        ] {
            let password = password.map(|it: &str| Secret(it.to_owned()));
            let user = user.map(str::to_owned);
            let expected = Address { socket, user, password, database };
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn wrong_addresses_are_refused_without_their_passwords() {
        for text in [
            "http://secret@h",
            "redis://:secret@h:x",
            "redis://:secret@h/x",
            "redis://:%zz@h",
            "redis://:secret@h:70000",
            "unix://",
            "unix:///a?x=1",
            "redis://:secret@h?db=1",
            "redis://:%f%@h",
        ] {
            let refused = parse(text).expect_err(text);
            assert!(!refused.contains("secret"), "{refused}");
        }
    }

    #[test]
    fn no_password_is_shown() {
        let address = parse("redis://user:secret@[::1]:7").expect("an address");
        assert_eq!(address.to_string(), "[::1]:7");
        assert!(!format!("{address:?}").contains("secret"));
    }
}
