//! `SW.BACKUP`, `SW.BACKUPS`: backups of all that the server keeps, while it serves.

use std::time::SystemTime;

use sapwood::aggregate::Progress;
use sapwood::{BackupInfo, Backups};

use crate::catalog::{Categories, Flags};
use crate::command::arguments::{integer, is};
use crate::command::{Answer, Call, Command, Run};
use crate::jobs::{Effect, Job, Jobs};
use crate::protocol::reply::Reply;
use crate::refusal::{Refusal, SYNTAX, refuse};
use crate::service::Service;

const NAME: &str = "sw.backup";

const fn backups(name: &'static str, arity: isize, run: Run) -> Command {
    Command::new("server", name, arity, run)
        .flags(Flags::ADMIN.union(Flags::NO_MULTI))
        .categories(Categories::DANGEROUS)
}

pub(crate) const COMMANDS: &[Command] = &[
    backups(NAME, -1, add).about(
        "1.0.0",
        "[KEEP count]",
        "Adds a backup of all that the server keeps to its folder of backups, and removes the \
         oldest but for a number of them.",
    ),
    backups("sw.backups", 1, list).about("1.0.0", "", "Returns the backups that there are."),
];

/// Whether a backup is being taken, for which what removes files would wait.
pub(super) fn is_running(jobs: &Jobs) -> bool {
    jobs.all().iter().any(|running| running.command == NAME)
}

/// What is refused until a backup has ended, in place of waiting for it.
pub(super) const RUNNING: Refusal =
    Refusal::text("ERR a backup is being taken; wait for its end, or cancel it with SW.CANCEL");

fn open(service: &Service) -> Result<Backups, Refusal> {
    let folder = service.options.admin.backups.as_ref().ok_or(Refusal::text(
        "ERR the server has no folder for backups; start it with --backups FOLDER",
    ))?;
    Backups::open_or_create(folder).map_err(Refusal::err)
}

fn add(call: &mut Call<'_>) -> Answer {
    let kept = match call.args[1..] {
        [] => None,
        [word, count] if is(word, "keep") => match usize::try_from(integer(count)?) {
            Ok(count) if count > 0 => Some(count),
            _ => return Err(Refusal::text("ERR KEEP takes a number of backups from 1 on")),
        },
        _ => return Err(SYNTAX),
    };
    if is_running(&call.service.jobs) {
        return Err(RUNNING);
    }
    let backups = open(call.service)?;
    let db = call.service.db.clone();
    let begun = call.service.jobs.begin(call.client.id, NAME, ("", None), call.now, Effect::Reads);
    let protocol = call.client.protocol;
    let cancel = begun.running.cancel.clone();
    call.job = Some(Job::with_cancel(cancel, move |out| {
        let running = &begun.running;
        let taken = backups.add(&db, |progress| {
            running.note(Progress { done: progress.done, total: progress.all });
            !running.cancel.is_cancelled()
        });
        let done = taken.and_then(|info| {
            kept.map_or(Ok(()), |count| backups.keep(count).map(drop)).map(|()| info)
        });
        let mut reply = Reply::new(out, protocol);
        match done {
            Ok(info) => tell(&mut reply, &info),
            Err(error) => refuse(&mut reply, &Refusal::err(error)),
        }
    }));
    Ok(())
}

fn list(call: &mut Call<'_>) -> Answer {
    if is_running(&call.service.jobs) {
        return Err(RUNNING);
    }
    let infos = open(call.service)?.list().map_err(Refusal::err)?;
    call.reply.array(infos.len());
    infos.iter().for_each(|info| tell(&mut call.reply, info));
    Ok(())
}

fn tell(reply: &mut Reply<'_>, info: &BackupInfo) {
    let taken = info.taken.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let of = [
        ("number", info.number),
        ("taken", taken),
        ("files", info.files),
        ("bytes", info.bytes),
        ("own_bytes", info.own_bytes),
    ];
    reply.map(of.len());
    for (name, number) in of {
        reply.bulk(name.as_bytes());
        reply.integer(i64::try_from(number).unwrap_or(i64::MAX));
    }
}
