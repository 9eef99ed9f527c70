//! The protocol of a server: how an entry is written and read, and where a reply ends.

use crate::harness::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Redis,
    /// memcached's text protocol, which all of its clients speak. Its meta protocol says the same
    /// in about as many bytes.
    Memcached,
}

impl Protocol {
    pub(crate) fn set(self, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        match self {
            Protocol::Redis => request(&[b"SET", key, value], out),
            Protocol::Memcached => {
                let len = format!(" 0 0 {}\r\n", value.len());
                append(out, &[b"set ", key, len.as_bytes(), value, b"\r\n"]);
            }
        }
    }

    /// Appends the reply to [`Protocol::set`].
    pub(crate) fn was_set(self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self {
            Protocol::Redis => b"+OK\r\n",
            Protocol::Memcached => b"STORED\r\n",
        });
    }

    pub(crate) fn get(self, key: &[u8], out: &mut Vec<u8>) {
        match self {
            Protocol::Redis => request(&[b"GET", key], out),
            Protocol::Memcached => append(out, &[b"get ", key, b"\r\n"]),
        }
    }

    /// Appends the reply to [`Protocol::get`] of a key that is there.
    pub(crate) fn was_got(self, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        match self {
            Protocol::Redis => {
                let len = format!("${}\r\n", value.len());
                append(out, &[len.as_bytes(), value, b"\r\n"]);
            }
            Protocol::Memcached => {
                let len = format!(" 0 {}\r\n", value.len());
                append(out, &[b"VALUE ", key, len.as_bytes(), value, b"\r\nEND\r\n"]);
            }
        }
    }

    /// The bytes of a value in a reply to [`Protocol::get`].
    pub(crate) fn value(self, reply: &[u8]) -> Option<&[u8]> {
        match self {
            Protocol::Redis => bulk(reply),
            Protocol::Memcached => {
                let end = reply.windows(2).position(|pair| pair == b"\r\n")?;
                reply.strip_suffix(b"\r\nEND\r\n")?.get(end + 2..)
            }
        }
    }

    pub(crate) fn ping(self, out: &mut Vec<u8>) {
        match self {
            Protocol::Redis => request(&[b"PING"], out),
            Protocol::Memcached => out.extend_from_slice(b"version\r\n"),
        }
    }

    pub(crate) fn first_len(self, bytes: &[u8]) -> Result<Option<usize>> {
        match self {
            Protocol::Redis => redis_first_len(bytes),
            Protocol::Memcached => memcached_first_len(bytes),
        }
    }
}

fn append(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

pub(crate) fn request(args: &[&[u8]], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
    for arg in args {
        let len = format!("${}\r\n", arg.len());
        append(out, &[len.as_bytes(), arg, b"\r\n"]);
    }
}

/// The bytes of the first reply in version 2 of Redis's protocol, or `None` if more must come.
fn redis_first_len(bytes: &[u8]) -> Result<Option<usize>> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let line = &bytes[1..end];
    let number = || -> Result<i64> { Ok(std::str::from_utf8(line)?.parse()?) };
    let mut at = end + 2;
    match bytes[0] {
        b'+' | b':' => {}
        b'-' => bail!("the server refused: {}", String::from_utf8_lossy(line)),
        b'$' => {
            if let Ok(len) = usize::try_from(number()?) {
                at += len + 2;
            }
        }
        b'*' => {
            for _ in 0..number()?.max(0) {
                match redis_first_len(bytes.get(at..).unwrap_or_default())? {
                    None => return Ok(None),
                    Some(len) => at += len,
                }
            }
        }
        other => bail!("no reply begins with byte {other}"),
    }
    Ok((at <= bytes.len()).then_some(at))
}

fn bulk(reply: &[u8]) -> Option<&[u8]> {
    let end = reply.windows(2).position(|pair| pair == b"\r\n")?;
    if reply[0] != b'$' || reply[1] == b'-' {
        return None;
    }
    reply.get(end + 2..reply.len() - 2)
}

fn memcached_first_len(bytes: &[u8]) -> Result<Option<usize>> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let line = String::from_utf8_lossy(&bytes[..end]);
    if line.starts_with("VALUE ") {
        let len: usize = line.rsplit(' ').next().unwrap_or_default().parse()?;
        let all = end + 2 + len + b"\r\nEND\r\n".len();
        return Ok((all <= bytes.len()).then_some(all));
    }
    match &*line {
        "STORED" | "END" => Ok(Some(end + 2)),
        version if version.starts_with("VERSION ") => Ok(Some(end + 2)),
        refusal => bail!("the server refused: {refusal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_as_they_are_written() {
        for protocol in [Protocol::Redis, Protocol::Memcached] {
            let mut replies = Vec::new();
            protocol.was_got(b"key", b"a\r\nvalue", &mut replies);
            let got = replies.len();
            protocol.was_set(&mut replies);
            for cut in 0..got {
                let found = protocol.first_len(&replies[..cut]).expect("the beginning of a reply");
                assert_eq!(found, None, "{protocol:?}: {cut}");
            }
            assert_eq!(protocol.first_len(&replies).expect("a reply"), Some(got));
            assert_eq!(protocol.value(&replies[..got]), Some(&b"a\r\nvalue"[..]));
            let set = protocol.first_len(&replies[got..]).expect("a reply");
            assert_eq!(set, Some(replies.len() - got));
        }
        assert_eq!(Protocol::Memcached.value(b"END\r\n"), None, "no such key");
        assert!(Protocol::Memcached.first_len(b"SERVER_ERROR no\r\n").is_err());
    }

    #[test]
    fn replies_end_where_their_lengths_say() {
        let whole = b"*3\r\n$3\r\nabc\r\n:1\r\n*1\r\n$-1\r\n+more";
        assert_eq!(redis_first_len(whole).expect("replies"), Some(whole.len() - 5));
        for cut in 0..whole.len() - 5 {
            assert_eq!(redis_first_len(&whole[..cut]).expect("replies"), None, "{cut}");
        }
        assert_eq!(bulk(b"$3\r\nabc\r\n"), Some(&b"abc"[..]));
        assert_eq!(bulk(b"$-1\r\n"), None);
        assert!(redis_first_len(b"-ERR no\r\n").is_err());
    }
}
