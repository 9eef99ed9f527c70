//! The user and the password in a request: Basic authentication (RFC 7617).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;

/// A user, and the password that the client says.
#[derive(PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: Vec<u8>,
    pub(super) password: Vec<u8>,
}

impl Login {
    /// That of a request, if it has one. Without a name it is that of the first user, as in `AUTH password`.
    ///
    /// # Errors
    /// For a header of another form.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Login>, &'static str> {
        const OTHER: &str =
            "the header Authorization is no `Basic` with user and password in Base64";
        let Some(header) = headers.get(AUTHORIZATION) else { return Ok(None) };
        let (scheme, coded) =
            header.to_str().ok().and_then(|header| header.split_once(' ')).ok_or(OTHER)?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return Err(OTHER);
        }
        let mut user = STANDARD.decode(coded.trim()).map_err(|_| OTHER)?;
        let colon = user.iter().position(|byte| *byte == b':').ok_or(OTHER)?;
        let password = user.split_off(colon + 1);
        user.pop();
        if user.is_empty() {
            user = crate::acl::DEFAULT.to_vec();
        }
        Ok(Some(Login { user, password }))
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn of(header: &[u8]) -> Result<Option<(String, String)>, &'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_bytes(header).expect("a header"));
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Ok(Login::of(&headers)?.map(|login| (text(login.user), text(login.password))))
    }

    #[test]
    fn users_and_passwords_are_read() {
        let both = |user: &str, password: &str| Ok(Some((user.to_owned(), password.to_owned())));
        assert_eq!(of(b"Basic YWRhOnB3"), both("ada", "pw"));
        assert_eq!(of(b"basic  YWRhOnA6dw=="), both("ada", "p:w"));
        assert_eq!(of(b"Basic OnB3"), both("default", "pw"));
        assert_eq!(of(b"Basic YWRhOg=="), both("ada", ""));
        assert!(matches!(Login::of(&HeaderMap::new()), Ok(None)));
    }

    #[test]
    fn other_forms_are_refused() {
        for header in [
            &b"Bearer YWRhOnB3"[..],
            b"Basic",
            b"Basic ",
            b"Basic YWRh",
            b"Basic !",
            b"Basic \xFF",
            b"",
        ] {
            assert!(of(header).is_err(), "{header:?}");
        }
    }
}
