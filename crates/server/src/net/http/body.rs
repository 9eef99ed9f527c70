//! Bodies of requests: how long one may be, how many bytes of all may be there, and how slowly they may come.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::failure::Failure;

/// Bytes of a body, at most.
const BODY_BYTES_MAX: usize = 64 << 20;
/// Bytes of all bodies that are there, at most: they are counted until their command is done.
const BODIES_BYTES_MAX: usize = 256 << 20;
/// The time for a body to come ...
const TIMEOUT: Duration = Duration::from_secs(10);
/// ... and bytes of it that give it a second more: one that trickles would keep its client, and its
/// room.
const BYTES_A_SECOND: usize = 64 << 10;

/// Room for bodies.
#[derive(Debug)]
pub(super) struct Bodies {
    room: Arc<Semaphore>,
}

/// Room that a body takes, until it is dropped.
#[derive(Debug, Default)]
pub(super) struct Room(Option<OwnedSemaphorePermit>);

impl Default for Bodies {
    fn default() -> Bodies {
        Bodies { room: Arc::new(Semaphore::new(BODIES_BYTES_MAX)) }
    }
}

impl Bodies {
    /// Reads a body.
    pub(super) async fn read(&self, mut body: Incoming) -> Result<(Vec<u8>, Room), Failure> {
        if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
            return Err(too_long());
        }
        let (mut bytes, mut room) = (Vec::new(), Room::default());
        let begun = Instant::now();
        loop {
            let more = tokio::time::timeout_at(begun + time_for(bytes.len()), body.frame()).await;
            let frame = match more {
                Ok(None) => return Ok((bytes, room)),
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => {
                    let why = format!("the body cannot be read: {error}");
                    return Err(Failure::new(StatusCode::BAD_REQUEST, why));
                }
                Err(_) => {
                    let why = "the body comes too slowly: send it faster, or in several requests";
                    return Err(Failure::new(StatusCode::REQUEST_TIMEOUT, why));
                }
            };
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > BODY_BYTES_MAX {
                return Err(too_long());
            }
            self.take(&mut room, data.len())?;
            bytes.extend_from_slice(&data);
        }
    }

    /// Takes room for more bytes.
    fn take(&self, room: &mut Room, bytes: usize) -> Result<(), Failure> {
        // A frame is shorter than all room.
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let Ok(permit) = Arc::clone(&self.room).try_acquire_many_owned(bytes) else {
            let why = "too many bytes of requests are there at a time: try again later";
            return Err(Failure::new(StatusCode::TOO_MANY_REQUESTS, why));
        };
        match &mut room.0 {
            Some(taken) => taken.merge(permit),
            None => room.0 = Some(permit),
        }
        Ok(())
    }
}

/// The time that a body has of which so many bytes have come.
fn time_for(bytes: usize) -> Duration {
    TIMEOUT + Duration::from_secs_f64(bytes as f64 / BYTES_A_SECOND as f64)
}

fn too_long() -> Failure {
    let why = format!("the body is longer than {BODY_BYTES_MAX} bytes: send several");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_as_much_time_as_its_bytes_take() {
        assert_eq!(time_for(0), Duration::from_secs(10));
        assert!(time_for(1_000) < Duration::from_secs(11), "a byte now and then wins nothing");
        assert_eq!(time_for(BODY_BYTES_MAX), Duration::from_secs(10 + 1_024));
    }

    #[test]
    fn room_is_given_back() {
        let bodies = Bodies { room: Arc::new(Semaphore::new(10)) };
        let (mut one, mut other) = (Room::default(), Room::default());
        assert_eq!(bodies.take(&mut one, 4), Ok(()));
        assert_eq!(bodies.take(&mut one, 4), Ok(()));
        assert!(bodies.take(&mut other, 4).is_err());
        drop(one);
        assert_eq!(bodies.take(&mut other, 10), Ok(()));
        assert!(bodies.take(&mut other, usize::MAX).is_err());
    }
}
