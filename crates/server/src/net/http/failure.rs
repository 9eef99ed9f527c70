//! Refusals, as Druid writes them: a status, and an object with `error` and `errorMessage`.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde_json::json;

/// Why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    status: StatusCode,
    message: String,
    /// The methods that there are, where another was used.
    allowed: Option<&'static str>,
}

impl Failure {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Failure {
        Failure { status, message: message.into(), allowed: None }
    }

    /// The refusal of a request beyond the limit.
    pub(super) fn too_many() -> Failure {
        let why = "too many requests are answered at a time: try again later";
        Failure::new(StatusCode::TOO_MANY_REQUESTS, why)
    }

    /// The path has another method.
    pub(super) fn method(allowed: &'static str) -> Failure {
        let message = format!("this path has {allowed} alone");
        let allowed = Some(allowed);
        Failure { status: StatusCode::METHOD_NOT_ALLOWED, message, allowed }
    }

    /// A refusal of a command, by its code.
    pub(super) fn of_reply(error: &str) -> Failure {
        let (code, rest) = error.split_once(' ').unwrap_or((error, ""));
        let status = match (code, rest) {
            ("NOAUTH" | "WRONGPASS", _) => StatusCode::UNAUTHORIZED,
            ("NOPERM" | "DENIED", _) => StatusCode::FORBIDDEN,
            ("OOM" | "MISCONF", _) => StatusCode::SERVICE_UNAVAILABLE,
            ("TIMEOUT", _) => StatusCode::GATEWAY_TIMEOUT,
            ("ERR", "no such table") => StatusCode::NOT_FOUND,
            ("ERR", "cancelled") => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        };
        Failure::new(status, if matches!(code, "ERR" | "TIMEOUT") { rest } else { error })
    }

    /// What Druid calls it.
    fn name(&self) -> &'static str {
        match self.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "Unauthorized request",
            StatusCode::NOT_FOUND => "Unknown datasource",
            StatusCode::TOO_MANY_REQUESTS => "Query capacity exceeded",
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::PAYLOAD_TOO_LARGE => {
                "Resource limit exceeded"
            }
            StatusCode::NOT_IMPLEMENTED
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::UNSUPPORTED_MEDIA_TYPE => "Unsupported operation",
            StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => "Query timeout",
            StatusCode::BAD_REQUEST => "Query validation failed",
            StatusCode::INTERNAL_SERVER_ERROR if self.message == "cancelled" => "Query cancelled",
            _ => "Unknown exception",
        }
    }

    /// The class of Druid's that says it, where there is one.
    fn class(&self) -> Option<&'static str> {
        match self.name() {
            "Query timeout" => Some("org.apache.druid.query.QueryTimeoutException"),
            "Query cancelled" => Some("org.apache.druid.query.QueryInterruptedException"),
            "Query capacity exceeded" => {
                Some("org.apache.druid.query.QueryCapacityExceededException")
            }
            "Resource limit exceeded" => {
                Some("org.apache.druid.query.ResourceLimitExceededException")
            }
            "Unsupported operation" => Some("org.apache.druid.query.QueryUnsupportedException"),
            _ => None,
        }
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let body = json!({
            "error": self.name(),
            "errorMessage": self.message,
            "errorClass": self.class(),
            "host": null,
        });
        let mut response = super::text(self.status, "application/json", body.to_string());
        let headers = response.headers_mut();
        match self.status {
            StatusCode::UNAUTHORIZED => {
                let basic = HeaderValue::from_static("Basic realm=\"sapwood\", charset=\"UTF-8\"");
                headers.insert(WWW_AUTHENTICATE, basic);
            }
            StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        if let Some(allowed) = self.allowed {
            headers.insert(ALLOW, HeaderValue::from_static(allowed));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_refusals_are_statuses() {
        for (error, status, message) in [
            ("NOAUTH Authentication required.", 401, "NOAUTH Authentication required."),
            ("WRONGPASS invalid", 401, "WRONGPASS invalid"),
            ("NOPERM this user may not", 403, "NOPERM this user may not"),
            ("ERR no such table", 404, "no such table"),
            ("ERR cancelled", 500, "cancelled"),
            ("OOM too much", 503, "OOM too much"),
            ("TIMEOUT the query took longer", 504, "the query took longer"),
            ("ERR the query cannot be answered: x", 400, "the query cannot be answered: x"),
            ("", 400, ""),
        ] {
            let failure = Failure::of_reply(error);
            assert_eq!((failure.status.as_u16(), failure.message.as_str()), (status, message));
        }
    }
}
