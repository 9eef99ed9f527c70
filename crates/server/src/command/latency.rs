//! `SLOWLOG` and `LATENCY`: commands that took long.

use crate::admin::tally::Count;
use crate::catalog::Flags;
use crate::command::arguments::integer;
use crate::command::{self, Answer, Call, Command, Run};
use crate::refusal::Refusal;

const fn admin(name: &'static str, arity: isize, run: Run) -> Command {
    Command::new("server", name, arity, run).flags(Flags::ADMIN)
}

pub(crate) const COMMANDS: &[Command] = &[
    Command::new("server", "slowlog", -2, slowlog_help)
        .about("2.2.12", "subcommand", "A container for slow log commands.")
        .subcommands(&[
            admin("slowlog|get", -2, slowlog_get).about(
                "2.2.12",
                "[count]",
                "Returns the slow log's entries.",
            ),
            admin("slowlog|len", 2, slowlog_len).about(
                "2.2.12",
                "",
                "Returns the number of entries in the slow log.",
            ),
            admin("slowlog|reset", 2, slowlog_reset).about(
                "2.2.12",
                "",
                "Clears all entries from the slow log.",
            ),
            Command::new("server", "slowlog|help", 2, slowlog_help).about(
                "6.2.0",
                "",
                "Shows helpful text about the different subcommands.",
            ),
        ]),
    Command::new("server", "latency", -2, latency_help)
        .about("2.8.13", "subcommand", "A container for latency diagnostics commands.")
        .subcommands(&[
            admin("latency|latest", 2, latency_latest).about(
                "2.8.13",
                "",
                "Returns the latest latency samples for all events.",
            ),
            admin("latency|history", 3, latency_history).about(
                "2.8.13",
                "event",
                "Returns timestamp-latency samples for an event.",
            ),
            admin("latency|reset", -2, latency_reset).about(
                "2.8.13",
                "[event [event ...]]",
                "Resets the latency data for one or more events.",
            ),
            admin("latency|doctor", 2, latency_doctor).about(
                "2.8.13",
                "",
                "Returns a human-readable latency analysis report.",
            ),
            admin("latency|histogram", -2, latency_histogram).about(
                "7.0.0",
                "[command [command ...]]",
                "Returns the cumulative distribution of latencies of a subset or all commands.",
            ),
            Command::new("server", "latency|help", 2, latency_help).about(
                "2.8.13",
                "",
                "Returns helpful text about the different subcommands.",
            ),
        ]),
];

fn slowlog_get(call: &mut Call<'_>) -> Answer {
    if call.args.len() > 3 {
        return Err(Refusal::arguments("slowlog|get"));
    }
    let count = match call.args.get(2) {
        None => 10,
        Some(count) => match integer(count)? {
            -1 => usize::MAX,
            count => usize::try_from(count)
                .map_err(|_| Refusal::text("ERR count should be greater than or equal to -1"))?,
        },
    };
    let kept = call.service.admin.slow.newest(count);
    call.reply.array(kept.len());
    for slow in kept {
        call.reply.array(6);
        call.reply.integer(slow.id as i64);
        call.reply.integer(slow.at as i64);
        call.reply.integer(slow.micros as i64);
        call.reply.array(slow.args.len());
        slow.args.iter().for_each(|arg| call.reply.bulk(arg));
        call.reply.bulk(slow.client.as_bytes());
        call.reply.bulk(slow.name.as_bytes());
    }
    Ok(())
}

fn slowlog_len(call: &mut Call<'_>) -> Answer {
    call.reply.integer(call.service.admin.slow.len() as i64);
    Ok(())
}

fn slowlog_reset(call: &mut Call<'_>) -> Answer {
    call.service.admin.slow.reset();
    call.reply.simple("OK");
    Ok(())
}

fn slowlog_help(call: &mut Call<'_>) -> Answer {
    super::server::write_help(
        call,
        "SLOWLOG",
        &[
            "GET [<count>]",
            "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
            "    Entries are made of:",
            "    id, timestamp, time in microseconds, arguments array, client IP and port,",
            "    client name",
            "LEN",
            "    Return the length of the slowlog.",
            "RESET",
            "    Reset the slowlog.",
        ],
    );
    Ok(())
}

fn latency_latest(call: &mut Call<'_>) -> Answer {
    let events = call.service.admin.spikes.events();
    call.reply.array(events.len());
    for (name, event) in events {
        let (at, millis) = event.spikes.back().copied().unwrap_or_default();
        call.reply.array(4);
        call.reply.bulk(name.as_bytes());
        [at, millis, event.millis_max].iter().for_each(|n| call.reply.integer(*n as i64));
    }
    Ok(())
}

fn latency_history(call: &mut Call<'_>) -> Answer {
    let events = call.service.admin.spikes.events();
    let of_name = |(name, _): &(&&str, _)| name.as_bytes().eq_ignore_ascii_case(call.args[2]);
    let spikes = events.iter().find(of_name).map(|(_, event)| event.spikes.clone());
    let spikes = spikes.unwrap_or_default();
    call.reply.array(spikes.len());
    for (at, millis) in spikes {
        call.reply.array(2);
        call.reply.integer(at as i64);
        call.reply.integer(millis as i64);
    }
    Ok(())
}

fn latency_reset(call: &mut Call<'_>) -> Answer {
    let count = call.service.admin.spikes.reset(&call.args[2..]);
    call.reply.integer(count as i64);
    Ok(())
}

fn latency_doctor(call: &mut Call<'_>) -> Answer {
    let threshold = call.service.admin.settings.latency_millis();
    let events = call.service.admin.spikes.events();
    let text = match (threshold, events.is_empty()) {
        (0, _) => "Latency monitoring is disabled. Set latency-monitor-threshold to the \
            milliseconds from which on a command counts: CONFIG SET latency-monitor-threshold 100.\n"
            .to_owned(),
        (_, true) => "No command took longer than the threshold.\n".to_owned(),
        (threshold, false) => {
            let line = |(name, event): (&str, crate::admin::slow::Event)| {
                let (count, longest) = (event.spikes.len(), event.millis_max);
                format!(
                    "{name}: {count} seconds with spikes above {threshold} ms, the longest of \
                     {longest} ms. SLOWLOG GET lists the commands.\n"
                )
            };
            events.into_iter().map(line).collect()
        }
    };
    call.reply.verbatim(&text);
    Ok(())
}

fn latency_histogram(call: &mut Call<'_>) -> Answer {
    let names = &call.args[2..];
    let is_wanted = |name: &str| {
        let parent = name.split('|').next().unwrap_or(name).as_bytes();
        let is = |wanted: &&[u8]| {
            wanted.eq_ignore_ascii_case(name.as_bytes())
                || wanted.eq_ignore_ascii_case(parent)
                    && command::find(wanted).is_some_and(|found| !found.subcommands.is_empty())
        };
        names.is_empty() || names.iter().any(is)
    };
    let counts = call.service.admin.tally.counts().into_iter();
    let counts: Vec<(&str, Count)> =
        counts.filter(|(name, count)| count.calls > 0 && is_wanted(name)).collect();
    call.reply.map(counts.len());
    for (name, count) in counts {
        call.reply.bulk(name.as_bytes());
        call.reply.map(2);
        call.reply.bulk(b"calls");
        call.reply.integer(count.calls as i64);
        call.reply.bulk(b"histogram_usec");
        let mut sum = 0;
        let times = count.times.iter().enumerate().filter(|(_, calls)| **calls > 0);
        let times: Vec<_> = times
            .map(|(at, calls)| {
                sum += calls;
                (1_i64 << at, sum)
            })
            .collect();
        call.reply.map(times.len());
        for (micros, calls) in times {
            call.reply.integer(micros);
            call.reply.integer(calls as i64);
        }
    }
    Ok(())
}

fn latency_help(call: &mut Call<'_>) -> Answer {
    super::server::write_help(
        call,
        "LATENCY",
        &[
            "DOCTOR",
            "    Return a human readable latency analysis report.",
            "HISTORY <event>",
            "    Return time-latency samples for the <event> class.",
            "LATEST",
            "    Return the latest latency samples for all events.",
            "RESET [<event> ...]",
            "    Reset latency data of one or more <event> classes.",
            "    (default: reset all data for all event classes)",
            "HISTOGRAM [COMMAND ...]",
            "    Return a cumulative distribution of commands in histogram format.",
        ],
    );
    Ok(())
}
