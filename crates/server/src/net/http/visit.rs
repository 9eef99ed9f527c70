//! A session for one request: its user, its command, its job.

use std::future::{IntoFuture, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use hyper::header::HOST;
use hyper::{HeaderMap, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::body::Room;
use super::failure::Failure;
use super::login::Login;
use super::{Door, replies};
use crate::clients::{Order, Origin};
use crate::jobs::{CancelOnDrop, Job};
use crate::net::protected;
use crate::net::working::Working;
use crate::session::{Next, Session};

/// A client that comes for one request.
pub(super) struct Visit {
    session: Session,
    requests: Arc<Semaphore>,
}

impl Visit {
    /// Lets a client in, as the user that the request names.
    ///
    /// # Errors
    /// If it is not.
    pub(super) fn begin(
        door: &Door,
        origin: Origin,
        headers: &HeaderMap,
    ) -> Result<Visit, Failure> {
        let login = read_login(door, &origin, headers)?;
        let Some(session) = Session::connect(Arc::clone(&door.service), origin) else {
            let why = "max number of clients reached";
            return Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, why));
        };
        let mut visit = Visit { session, requests: Arc::clone(&door.requests) };
        let mut hello: Vec<&[u8]> = vec![b"HELLO", b"3"];
        if let Some(Login { user, password }) = &login {
            hello.extend([b"AUTH", &user[..], password]);
        }
        let mut said = Vec::new();
        let (_used, next) = visit.session.run(&request(&hello), &mut said);
        match (replies::error(&said), next) {
            (Some(error), _) => Err(Failure::of_reply(&error)),
            // The login waits as well: what came behind it would be a command of another user.
            (None, Next::Full) if said.is_empty() => Err(paused()),
            (None, _) if said.is_empty() => Err(ended()),
            (None, _) => Ok(visit),
        }
    }

    /// Executes a command, and answers its reply. `room` is that of its arguments, which are there:
    /// from here on it takes a place among requests.
    ///
    /// # Errors
    /// The refusal of the command; if as many are executed as may be.
    pub(super) async fn call(mut self, args: &[&[u8]], room: Room) -> Result<Vec<u8>, Failure> {
        let place = Arc::clone(&self.requests).try_acquire_owned();
        let place = place.map_err(|_| Failure::too_many())?;
        let mut out = Vec::new();
        let bytes = request(args);
        let (_used, next) = self.session.run(&bytes, &mut out);
        drop(bytes);
        match next {
            Next::Job(job) => out = self.wait_for(job, (place, room)).await?,
            Next::Full if out.is_empty() => return Err(paused()),
            Next::More | Next::Full | Next::Close => {}
        }
        if let Some(changes) = self.session.take_unlasting() {
            changes.into_future().await.map_err(|error| {
                tracing::error!(%error, "changes of a client may not last");
                Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
            })?;
        }
        match replies::error(&out) {
            Some(error) => Err(Failure::of_reply(&error)),
            None if out.is_empty() => Err(ended()),
            None => Ok(out),
        }
    }

    /// Waits for a job. It is told to end when this is dropped, which is when the client goes.
    async fn wait_for(
        &mut self,
        job: Job,
        kept: (OwnedSemaphorePermit, Room),
    ) -> Result<Vec<u8>, Failure> {
        let _cancel = CancelOnDrop(job.cancel());
        let synced = self.session.always_synced();
        // A job that was told to end takes its place until it has ended.
        let work = Working::begin(job, synced, kept);
        let mailbox = &self.session.entry().mailbox;
        let killed = poll_fn(|context| match mailbox.attend(context) {
            Order::End => Poll::Ready(()),
            _ => Poll::Pending,
        });
        let done = tokio::select! {
            done = work => done,
            () = killed => return Err(ended()),
        };
        let replies = done
            .map_err(|error| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
        self.session.note_end_of_job(replies.len());
        Ok(replies)
    }
}

/// Tells if the user that a request names may call a command. Nothing is executed, and nothing holds
/// it up: neither other requests, nor a pause, nor the number of clients.
///
/// # Errors
/// The refusal of the request, or that of the command.
pub(super) fn expect_right(
    door: &Door,
    origin: Origin,
    headers: &HeaderMap,
    args: &[&[u8]],
) -> Result<(), Failure> {
    let login = read_login(door, &origin, headers)?;
    let login = login.as_ref().map(|Login { user, password }| (&user[..], &password[..]));
    let mut session = Session::connect_beyond_limit(Arc::clone(&door.service), origin);
    let outcome = session.expect_right(login, args);
    outcome.map_err(|refusal| Failure::of_reply(&String::from(refusal)))
}

/// The login in a request that protected mode lets in.
fn read_login(door: &Door, origin: &Origin, headers: &HeaderMap) -> Result<Option<Login>, Failure> {
    if let Origin::Tcp { peer, .. } = origin
        && protected::refusal(&door.service, peer.ip()).is_some()
    {
        let why = "the server is in protected mode, and no password is set: it answers clients of \
                   its own machine alone; set a password, or `protected-mode no`";
        return Err(Failure::new(StatusCode::FORBIDDEN, why));
    }
    if door.service.users.serves_this_machine_only()
        && let Some(host) = headers.get(HOST)
        && !host.to_str().is_ok_and(protected::is_of_this_machine)
    {
        let why = "the server is in protected mode, and no password is set: the header Host must \
                   be an address or `localhost`, so that no page in a browser can read answers; \
                   set a password, or `protected-mode no`";
        return Err(Failure::new(StatusCode::FORBIDDEN, why));
    }
    Login::of(headers).map_err(|why| Failure::new(StatusCode::UNAUTHORIZED, why))
}

fn paused() -> Failure {
    let why = "clients are paused: try again later";
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, why)
}

fn ended() -> Failure {
    let why = "the server ends, or has ended this client";
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, why)
}

/// A command, as clients send it.
fn request(args: &[&[u8]]) -> Vec<u8> {
    let len = args.iter().map(|arg| arg.len() + 32).sum();
    let mut bytes = Vec::with_capacity(len);
    bytes.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
    for arg in args {
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;
    use crate::acl::{ProtectedMode, Secret};
    use crate::net::http::tests::door;

    #[test]
    fn a_page_whose_name_has_an_address_of_this_machine_is_let_in_with_a_password() {
        let door = door();
        let status = |host: &'static str| {
            let peer = "127.0.0.1:1".parse().expect("an address");
            let origin = Origin::Tcp { peer, local: peer, descriptor: -1 };
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            let visit = Visit::begin(&door, origin, &headers);
            visit.map_or_else(|failure| failure.into_response().status(), |_| StatusCode::OK)
        };
        assert_eq!(status("localhost:9121"), StatusCode::OK);
        assert_eq!(status("page.example:9121"), StatusCode::FORBIDDEN);
        door.service.users.set_default_password(Some(&Secret::from("said")));
        assert_eq!(status("page.example:9121"), StatusCode::UNAUTHORIZED);
        door.service.users.set_default_password(None);
        door.service.users.set_protected_mode(ProtectedMode::Off);
        assert_eq!(status("page.example:9121"), StatusCode::OK);
    }

    #[test]
    fn a_login_that_waits_for_the_end_of_a_pause_is_refused() {
        let door = door();
        let status = || {
            let visit = Visit::begin(&door, Origin::Within, &HeaderMap::new());
            visit.map_or_else(|failure| failure.into_response().status(), |_| StatusCode::OK)
        };
        let mut admin = Session::new(Arc::clone(&door.service));
        admin.run(b"CLIENT PAUSE 3600000\r\n", &mut Vec::new());
        assert_eq!(status(), StatusCode::SERVICE_UNAVAILABLE);
        admin.run(b"CLIENT UNPAUSE\r\n", &mut Vec::new());
        assert_eq!(status(), StatusCode::OK);
    }

    #[test]
    fn other_machines_are_let_in_when_there_is_a_password() {
        let door = door();
        let status = |peer: &str| {
            let peer = peer.parse().expect("an address");
            let origin = Origin::Tcp { peer, local: peer, descriptor: -1 };
            let visit = Visit::begin(&door, origin, &HeaderMap::new());
            visit.map_or_else(|failure| failure.into_response().status(), |_| StatusCode::OK)
        };
        assert_eq!(status("127.0.0.1:1"), StatusCode::OK);
        assert_eq!(status("10.0.0.1:1"), StatusCode::FORBIDDEN);
        door.service.users.set_default_password(Some(&Secret::from("said")));
        assert_eq!(status("10.0.0.1:1"), StatusCode::UNAUTHORIZED);
        assert_eq!(status("127.0.0.1:1"), StatusCode::UNAUTHORIZED);
        door.service.users.set_default_password(None);
        assert_eq!(status("127.0.0.1:1"), StatusCode::OK, "refusals give their place back");
    }
}
