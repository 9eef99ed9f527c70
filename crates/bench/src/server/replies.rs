//! Where a reply ends, in version 2 of the protocol.

use crate::Error;

/// The bytes of the first reply, or `None` if more must come.
pub(crate) fn first_len(bytes: &[u8]) -> Result<Option<usize>, Error> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let line = &bytes[1..end];
    let number = || -> Result<i64, Error> { Ok(std::str::from_utf8(line)?.parse()?) };
    let mut at = end + 2;
    match bytes[0] {
        b'+' | b':' => {}
        b'-' => return Err(format!("the server refused: {}", String::from_utf8_lossy(line)).into()),
        b'$' => {
            if let Ok(len) = usize::try_from(number()?) {
                at += len + 2;
            }
        }
        b'*' => {
            for _ in 0..number()?.max(0) {
                match first_len(bytes.get(at..).unwrap_or_default())? {
                    None => return Ok(None),
                    Some(len) => at += len,
                }
            }
        }
        other => return Err(format!("no reply begins with byte {other}").into()),
    }
    Ok((at <= bytes.len()).then_some(at))
}

/// The bytes that a reply holds, if it is a bulk string.
pub(crate) fn bulk(reply: &[u8]) -> Option<&[u8]> {
    let end = reply.windows(2).position(|pair| pair == b"\r\n")?;
    if reply[0] != b'$' || reply[1] == b'-' {
        return None;
    }
    reply.get(end + 2..reply.len() - 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_end_where_their_lengths_say() {
        let whole = b"*3\r\n$3\r\nabc\r\n:1\r\n*1\r\n$-1\r\n+more";
        assert_eq!(first_len(whole).expect("replies"), Some(whole.len() - 5));
        for cut in 0..whole.len() - 5 {
            assert_eq!(first_len(&whole[..cut]).expect("replies"), None, "{cut}");
        }
        assert_eq!(bulk(b"$3\r\nabc\r\n"), Some(&b"abc"[..]));
        assert_eq!(bulk(b"$-1\r\n"), None);
        assert!(first_len(b"-ERR no\r\n").is_err());
    }
}
