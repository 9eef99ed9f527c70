//! Messages for a client, and orders for its connection.
//!
//! A message is written in the client's version of the protocol, by the thread that sends it. The
//! connection takes all that have come when it has sent what it had, so a client that does not read
//! lets them pile up here, where they are bounded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use crate::protocol::reply::{Protocol, Reply};

/// The order that a connection has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Order {
    /// It serves its client.
    #[default]
    Serve,
    /// It answers what has come, and ends.
    Finish,
    /// It ends.
    End,
}

/// Messages and an order.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    /// Whether there are messages. Written under the lock.
    has_messages: AtomicBool,
    /// Whether the order is to end. Written under the lock.
    is_ended: AtomicBool,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    messages: Vec<u8>,
    /// Bytes of messages that the connection has taken, and the client has not.
    bytes_taken: usize,
    protocol: Protocol,
    order: Order,
    /// True once the client has left too much unread: the connection ends.
    is_full: bool,
    waker: Option<Waker>,
}

impl Mailbox {
    /// Adds a message. A client with more than `bytes_max` of them that it has not taken is closed.
    pub(crate) fn post(&self, bytes_max: usize, write: impl FnOnce(&mut Reply<'_>)) {
        let mut inside = self.lock();
        if inside.order == Order::End {
            return;
        }
        let protocol = inside.protocol;
        write(&mut Reply::new(&mut inside.messages, protocol));
        if inside.messages.len().saturating_add(inside.bytes_taken) > bytes_max {
            inside.is_full = true;
            self.end(&mut inside);
        } else if self.has_messages.swap(true, Ordering::AcqRel) {
            // Release and Acquire pair with those in `has_messages` and `take`. The connection was
            // woken for the message before, and has not come yet.
            return;
        }
        wake(inside);
    }

    /// Whether there are messages.
    #[inline]
    pub(crate) fn has_messages(&self) -> bool {
        // Acquire: pairs with the swap in `post`.
        self.has_messages.load(Ordering::Acquire)
    }

    /// The messages that have come. Those that were taken before have been sent, or the connection
    /// notes anew how many bytes are left.
    pub(crate) fn take(&self) -> Vec<u8> {
        let mut inside = self.lock();
        // Release: pairs with the swap in `post`.
        self.has_messages.store(false, Ordering::Release);
        let messages = std::mem::take(&mut inside.messages);
        inside.bytes_taken = messages.len();
        messages
    }

    /// Notes that the client has taken the messages that the connection took.
    pub(crate) fn sent(&self) {
        self.left(0);
    }

    /// Notes how many bytes the client has not taken of the messages that the connection took.
    pub(crate) fn left(&self, bytes: usize) {
        self.lock().bytes_taken = bytes;
    }

    /// Bytes of messages that the client has not taken.
    pub(crate) fn bytes(&self) -> usize {
        let inside = self.lock();
        inside.messages.len() + inside.bytes_taken
    }

    /// Writes the messages that come in a version of the protocol.
    pub(crate) fn set_protocol(&self, protocol: Protocol) {
        self.lock().protocol = protocol;
    }

    /// Gives an order; an earlier one that asks for more stays.
    pub(crate) fn order(&self, order: Order) {
        let mut inside = self.lock();
        match order {
            order if order <= inside.order => return,
            Order::End => self.end(&mut inside),
            order => inside.order = order,
        }
        wake(inside);
    }

    /// Ends the connection of a client that has left too much unread.
    pub(crate) fn overflow(&self) {
        let mut inside = self.lock();
        if inside.order != Order::End {
            inside.is_full = true;
            self.end(&mut inside);
        }
        wake(inside);
    }

    /// True once the client has left too much unread.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().is_full
    }

    /// Whether the order is to end.
    #[inline]
    pub(crate) fn is_ended(&self) -> bool {
        // Acquire: pairs with the Release in `end`.
        self.is_ended.load(Ordering::Acquire)
    }

    /// The order, and a wish to be woken when there is another, or a message.
    pub(crate) fn attend(&self, context: &mut Context<'_>) -> Order {
        let mut inside = self.lock();
        if !inside.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            inside.waker = Some(context.waker().clone());
        }
        inside.order
    }

    /// Wakes the connection, to look around.
    pub(crate) fn wake(&self) {
        wake(self.lock());
    }

    fn end(&self, inside: &mut Inside) {
        inside.order = Order::End;
        inside.messages = Vec::new();
        // Release: pairs with the Acquire in `is_ended`.
        self.is_ended.store(true, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes a connection, which may look into the mailbox at once.
fn wake(inside: MutexGuard<'_, Inside>) {
    let waker = inside.waker.clone();
    drop(inside);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_bounded_until_they_are_sent() {
        let mailbox = Mailbox::default();
        let post = || mailbox.post(20, |reply| reply.simple("12345"));
        post();
        assert!(mailbox.has_messages());
        assert_eq!(mailbox.take(), b"+12345\r\n");
        assert!(!mailbox.has_messages());
        post();
        assert!(!mailbox.is_ended(), "16 of 20 bytes");
        mailbox.sent();
        post();
        assert!(!mailbox.is_ended(), "16 of 20 bytes, since 8 were sent");
        assert_eq!(mailbox.take().len(), 16);
        mailbox.left(3);
        assert_eq!(mailbox.bytes(), 3);
        post();
        post();
        assert!(!mailbox.is_ended(), "19 of 20 bytes, since 13 of 16 were sent");
        post();
        assert!(mailbox.is_ended(), "27 of 20 bytes");
        post();
        assert_eq!(mailbox.take(), b"", "it is closed");
    }

    #[test]
    fn an_order_is_not_taken_back() {
        let mailbox = Mailbox::default();
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(mailbox.attend(&mut context), Order::Serve);
        mailbox.order(Order::Finish);
        mailbox.order(Order::Serve);
        assert_eq!(mailbox.attend(&mut context), Order::Finish);
        assert!(!mailbox.is_ended());
        mailbox.order(Order::End);
        mailbox.order(Order::Finish);
        assert_eq!(mailbox.attend(&mut context), Order::End);
        assert!(mailbox.is_ended());
    }
}
