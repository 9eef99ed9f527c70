//! A ring of a system that has none.

use std::io;

use super::{Read, Ticket};

/// It is never made.
#[derive(Debug)]
pub struct Ring<T> {
    never: std::convert::Infallible,
    _of: std::marker::PhantomData<T>,
}

impl<T> Ring<T> {
    /// Refuses: the system has no io_uring.
    ///
    /// # Errors
    /// `Unsupported`.
    pub fn new() -> io::Result<Ring<T>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// As of a ring that there is.
    pub fn is_broken(&self) -> bool {
        match self.never {}
    }

    /// As of a ring that there is.
    pub fn is_idle(&self) -> bool {
        match self.never {}
    }

    /// As of a ring that there is.
    pub fn begin(&mut self, _read: Read<T>) -> Ticket {
        match self.never {}
    }

    /// As of a ring that there is.
    pub fn submit(&mut self) {
        match self.never {}
    }

    /// As of a ring that there is.
    pub fn is_done(&self, _ticket: &Ticket) -> bool {
        match self.never {}
    }

    /// As of a ring that there is.
    pub fn wait_for(&mut self, _count: usize) {
        match self.never {}
    }

    /// As of a ring that there is.
    pub fn wait(&mut self, _ticket: Ticket) -> (Read<T>, io::Result<usize>) {
        match self.never {}
    }

    /// As of a ring that there is.
    pub fn take(&mut self, _ticket: Ticket) -> Result<(Read<T>, io::Result<usize>), Ticket> {
        match self.never {}
    }

    /// As of a ring that there is.
    pub fn is_left(&self) -> bool {
        match self.never {}
    }

    /// As of a ring that there is.
    pub fn settle(&mut self) {
        match self.never {}
    }

    /// As of a ring that there is.
    pub fn abandon(&mut self, _ticket: Ticket) {
        match self.never {}
    }
}
