//! Jobs: work that may take long, away from the threads that serve clients.

use std::sync::Arc;
use std::time::Instant;

use sapwood::AnyTable;
use sapwood::aggregate::Progress;

use crate::command::arguments::{integer, is};
use crate::command::client::Messages;
use crate::command::{Answer, Call};
use crate::databases::Databases;
use crate::jobs::Job;
use crate::jobs::{Begun, Effect, Running};
use crate::protocol::reply::{Protocol, Reply};
use crate::refusal::refuse;
use crate::refusal::{NOT_AN_INTEGER, Refusal, SYNTAX};
use crate::replicas::Replicas;

use super::{CANCELLED, cells, open, unfit};

/// What a job works on.
pub(super) struct Work<'w, T = AnyTable> {
    pub(super) table: &'w T,
    pub(super) running: &'w Running,
    /// `None` of a job inside a transaction, which has the databases for itself.
    pub(super) databases: Option<&'w Replicas<Databases>>,
    /// The client, if it is to be told how far the job is.
    told: Option<&'w Messages>,
}

impl<T> Work<'_, T> {
    /// Does something while no transaction runs.
    pub(super) fn between_transactions(&self, act: &mut dyn FnMut()) {
        let _shared = self.databases.map(Replicas::shared);
        act();
    }

    /// Notes how far the job is, and tells its client.
    pub(super) fn note(&self, progress: Progress) {
        self.running.note(progress);
        // Threads tell in any order, and the client is to see it grow.
        let progress = self.running.progress();
        if let Some(messages) = self.told {
            messages.post(|reply| {
                reply.push(5);
                reply.bulk(b"sw.progress");
                cells::count(reply, self.running.id);
                reply.bulk(self.running.table.as_bytes());
                cells::count(reply, progress.done);
                cells::count(reply, progress.total);
            });
        }
    }

    /// The refusal of a job that was told to stop.
    pub(super) fn check_cancelled(&self) -> Answer {
        match self.running.cancel.is_cancelled() {
            true => Err(CANCELLED),
            false => Ok(()),
        }
    }
}

/// The news that a job gives to its client before its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    Nothing,
    /// A push of `sw.progress`, the job, its table, visits done and visits expected, some hundred
    /// times.
    Progress,
}

/// What is known of a job before it begins.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) effect: Effect,
    pub(super) telling: Telling,
    /// What the client calls it.
    pub(super) name: Option<Box<str>>,
    /// When it is too late to begin.
    pub(super) deadline: Option<Instant>,
}

impl Terms {
    pub(super) fn new(effect: Effect, telling: Telling) -> Terms {
        Terms { effect, telling, name: None, deadline: None }
    }
}

/// Leaves the rest of a command, its reply with it, to a job on the command's table with keys.
pub(super) fn start(
    call: &mut Call<'_>,
    effect: Effect,
    telling: Telling,
    work: impl FnOnce(&Work<'_>, &mut Reply<'_>) -> Answer + Send + 'static,
) -> Answer {
    let table = open(call)?.0.clone();
    let name: Box<str> = table.name().into();
    start_on(call, (&name, table), Terms::new(effect, telling), work)
}

/// Leaves the rest of a command, its reply with it, to a job on a table, of which this is a handle.
pub(super) fn start_on<T: Send + 'static>(
    call: &mut Call<'_>,
    (name, table): (&str, T),
    terms: Terms,
    work: impl FnOnce(&Work<'_, T>, &mut Reply<'_>) -> Answer + Send + 'static,
) -> Answer {
    let Terms { effect, telling, name: job, deadline } = terms;
    let told = match (telling, call.client.protocol) {
        (Telling::Nothing, _) => None,
        (Telling::Progress, Protocol::Resp3) => Some(call.client.to_messages(call.service)),
        (Telling::Progress, Protocol::Resp2) => {
            return Err(Refusal::text("ERR PROGRESS needs version 3 of the protocol: HELLO 3"));
        }
    };
    let databases = (!call.is_exclusive()).then(|| Arc::clone(&call.service.databases));
    let (client, command) = (call.client.id, call.command.name);
    let begun = call.service.jobs.begin(client, command, (name, job), call.now, effect);
    let protocol = call.client.protocol;
    let cancel = begun.running.cancel.clone();
    let job = Job::with_cancel(cancel, move |out| {
        // The table's handle goes first: without jobs, the table can be dropped.
        let begun: Begun = begun;
        let table = table;
        let work_on = Work {
            table: &table,
            running: &begun.running,
            databases: databases.as_deref(),
            told: told.as_ref(),
        };
        let before = out.len();
        let mut reply = Reply::new(out, protocol);
        let in_time = match deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            true => Err(unfit(sapwood::rollup::Error::Timeout)),
            false => Ok(()),
        };
        let begun = work_on.check_cancelled().and(in_time);
        if let Err(refusal) = begun.and_then(|()| work(&work_on, &mut reply)) {
            reply.truncate(before);
            refuse(&mut reply, &refusal);
        }
    });
    call.job = Some(job.with_deadline(deadline));
    Ok(())
}

pub(super) fn jobs(call: &mut Call<'_>) -> Answer {
    let all = call.service.jobs.all();
    let reply = &mut call.reply;
    reply.array(all.len());
    for running in all {
        let progress = running.progress();
        reply.map(8);
        reply.bulk(b"id");
        cells::count(reply, running.id);
        reply.bulk(b"name");
        cells::text(reply, running.name.as_deref());
        reply.bulk(b"client");
        cells::count(reply, running.client);
        reply.bulk(b"command");
        reply.bulk(running.command.as_bytes());
        reply.bulk(b"table");
        reply.bulk(running.table.as_bytes());
        reply.bulk(b"done");
        cells::count(reply, progress.done);
        reply.bulk(b"total");
        cells::count(reply, progress.total);
        reply.bulk(b"milliseconds");
        reply.integer(call.now.saturating_sub(running.begun) as i64);
    }
    Ok(())
}

pub(super) fn cancel(call: &mut Call<'_>) -> Answer {
    let jobs = &call.service.jobs;
    let told = match call.args[1..] {
        [id] => {
            let id = u64::try_from(integer(id)?).map_err(|_| NOT_AN_INTEGER)?;
            usize::from(jobs.cancel(id))
        }
        [word, name] if is(word, "name") => {
            std::str::from_utf8(name).map_or(0, |name| jobs.cancel_named(name))
        }
        _ => return Err(SYNTAX),
    };
    cells::count(&mut call.reply, told as u64);
    Ok(())
}
