//! Every promise of the log, each with a test that fails when it is broken.
#![forbid(unsafe_code)]

mod crashes;
mod damage;
mod follow;
mod shared;
mod tables;
mod threads;
mod view;
mod world;
