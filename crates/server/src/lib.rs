//! A server for the Redis protocol.
//!
//! Commands are understood and executed in a layer that knows no socket: a [`Session`] takes the
//! bytes that a client sent and appends replies to a buffer, over a [`Service`] that all sessions
//! share. [`net`] puts it behind sockets.
#![forbid(unsafe_code)]

pub mod acl;
pub mod admin;
pub mod catalog;
pub mod clients;
pub mod clock;
pub mod command;
mod databases;
pub mod jobs;
pub mod net;
pub mod protocol;
pub mod refusal;
mod replicas;
pub mod service;
pub mod session;
pub mod store;
mod watched;

pub use service::Service;
pub use session::Session;

/// The version of Redis whose commands these are, for clients that ask.
pub const REDIS_VERSION: &str = "7.0.15";
