//! Commands about the server: `INFO`, `CONFIG`, `MEMORY`, `SAVE` and their like.

use std::time::Duration;

use crate::acl::{NewUsersChannels, ProtectedMode, Secret};
use crate::admin::{AppendFsync, Debug, SaveRule, Shutdown};
use crate::catalog::{Categories, Flags};
use crate::clients::QUERY_BYTES_LEAST;
use crate::command::arguments::{float, integer, is};
use crate::command::{Answer, Call, Command, Run};
use crate::command::{backups, info};
use crate::jobs::Job;
use crate::protocol::{glob, units};
use crate::refusal::SYNTAX;
use crate::refusal::{NOT_AN_INTEGER, Refusal};
use crate::service::Service;
use crate::store::memory::Memory;

const fn server(name: &'static str, arity: isize, run: Run) -> Command {
    Command::new("server", name, arity, run)
}

const fn admin(name: &'static str, arity: isize, run: Run) -> Command {
    server(name, arity, run).flags(Flags::ADMIN)
}

pub(crate) const COMMANDS: &[Command] = &[
    server("info", -1, info).categories(Categories::DANGEROUS).about(
        "1.0.0",
        "[section [section ...]]",
        "Returns information and statistics about the server.",
    ),
    server("time", 1, time).fast().about("2.6.0", "", "Returns the server time."),
    server("lastsave", 1, lastsave)
        .fast()
        .categories(Categories::ADMIN.union(Categories::DANGEROUS))
        .about("1.0.0", "", "Returns the Unix timestamp of the last successful save to disk."),
    admin("save", 1, save).alone().flags(Flags::NO_MULTI).about(
        "1.0.0",
        "",
        "Synchronously saves the database(s) to disk.",
    ),
    admin("bgsave", -1, bgsave).flags(Flags::NO_MULTI).about(
        "1.0.0",
        "[SCHEDULE]",
        "Asynchronously saves the database(s) to disk.",
    ),
    admin("shutdown", -1, shutdown).flags(Flags::NO_MULTI).about(
        "1.0.0",
        "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
        "Synchronously saves the database(s) to disk and shuts down the server.",
    ),
    Command::new("generic", "wait", 3, wait).categories(Categories::CONNECTION).about(
        "3.0.0",
        "numreplicas timeout",
        "Blocks until the asynchronous replication of all preceding write commands sent by the \
         connection is completed.",
    ),
    server("config", -2, config_help)
        .about("2.0.0", "subcommand", "A container for server configuration commands.")
        .subcommands(&[
            admin("config|get", -3, config_get).about(
                "2.0.0",
                "parameter [parameter ...]",
                "Returns the effective values of configuration parameters.",
            ),
            admin("config|set", -4, config_set).flags(Flags::SENSITIVE).about(
                "2.0.0",
                "parameter value [parameter value ...]",
                "Sets configuration parameters in-flight.",
            ),
            admin("config|resetstat", 2, config_resetstat).about(
                "2.0.0",
                "",
                "Resets the server's statistics.",
            ),
            admin("config|rewrite", 2, config_rewrite).about(
                "2.8.0",
                "",
                "Persists the effective configuration to file.",
            ),
            server("config|help", 2, config_help).about(
                "5.0.0",
                "",
                "Returns helpful text about the different subcommands.",
            ),
        ]),
    server("memory", -2, memory_help)
        .about("4.0.0", "subcommand", "A container for memory diagnostics commands.")
        .subcommands(&[
            server("memory|usage", -3, memory_usage).reads().keys(2, 2, 1).about(
                "4.0.0",
                "key [SAMPLES count]",
                "Estimates the memory usage of a key.",
            ),
            server("memory|stats", 2, memory_stats).about(
                "4.0.0",
                "",
                "Returns details about memory usage.",
            ),
            server("memory|doctor", 2, memory_doctor).about(
                "4.0.0",
                "",
                "Outputs a memory problems report.",
            ),
            server("memory|help", 2, memory_help).about(
                "4.0.0",
                "",
                "Returns helpful text about the different subcommands.",
            ),
        ]),
    admin("debug", -2, debug).about("1.0.0", "subcommand", "A container for debugging commands."),
];

/// Writes the lines of a `HELP`, with the head and the end that Redis gives them.
pub(super) fn write_help(call: &mut Call<'_>, name: &str, lines: &[&str]) {
    let head = format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    call.reply.array(lines.len() + 3);
    call.reply.simple(&head);
    lines.iter().for_each(|line| call.reply.simple(line));
    call.reply.simple("HELP");
    call.reply.simple("    Print this help.");
}

fn info(call: &mut Call<'_>) -> Answer {
    let text = info::text(call.service, call.access.databases(), &call.args[1..], call.now)?;
    call.reply.verbatim(&text);
    Ok(())
}

fn time(call: &mut Call<'_>) -> Answer {
    let (seconds, micros) = match call.service.options.clock {
        crate::clock::Clock::System => {
            let now = std::time::SystemTime::now();
            let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            (since.as_secs(), u64::from(since.subsec_micros()))
        }
        crate::clock::Clock::Manual(_) => (call.now / 1_000, call.now % 1_000 * 1_000),
    };
    call.reply.array(2);
    call.reply.bulk_integer(seconds as i64);
    call.reply.bulk_integer(micros as i64);
    Ok(())
}

fn lastsave(call: &mut Call<'_>) -> Answer {
    call.reply.integer((call.service.admin.saves.past().saved_at / 1_000) as i64);
    Ok(())
}

/// Checkpoints without a directory have no place to go.
fn expect_directory(service: &Service) -> Answer {
    match service.db.directory() {
        Some(_) => Ok(()),
        None => Err(Refusal::text(
            "ERR the server keeps its data in memory alone; start it with --dir to save them",
        )),
    }
}

fn save(call: &mut Call<'_>) -> Answer {
    expect_directory(call.service)?;
    if backups::is_running(&call.service.jobs) {
        return Err(backups::RUNNING);
    }
    if call.service.admin.saves.is_running() {
        return Err(Refusal::text("ERR Background save already in progress"));
    }
    call.service.save().map_err(Refusal::err)?;
    call.reply.simple("OK");
    Ok(())
}

fn bgsave(call: &mut Call<'_>) -> Answer {
    let is_later = match call.args[1..] {
        [] => false,
        [word] if is(word, "schedule") => true,
        _ => return Err(SYNTAX),
    };
    expect_directory(call.service)?;
    let is_running = call.service.admin.saves.is_running();
    if is_running && !is_later {
        return Err(Refusal::text("ERR Background save already in progress"));
    }
    call.service.admin.saves.want();
    call.reply.simple(match is_running {
        true => "Background saving scheduled",
        false => "Background saving started",
    });
    Ok(())
}

fn shutdown(call: &mut Call<'_>) -> Answer {
    let mut shutdown = Shutdown::ByRules;
    for word in &call.args[1..] {
        shutdown = match word {
            word if is(word, "save") && shutdown != Shutdown::NoSave => Shutdown::Save,
            word if is(word, "nosave") && shutdown != Shutdown::Save => Shutdown::NoSave,
            word if is(word, "now") || is(word, "force") => shutdown,
            word if is(word, "abort") && call.args.len() == 2 => {
                return Err(Refusal::text("ERR No shutdown in progress."));
            }
            _ => return Err(SYNTAX),
        };
    }
    if shutdown == Shutdown::Save {
        expect_directory(call.service)?;
    }
    call.service.admin.end(shutdown);
    // The end of the connection is the reply.
    call.client.is_closing = true;
    Ok(())
}

/// There are no replicas, and so none to wait for.
fn wait(call: &mut Call<'_>) -> Answer {
    integer(call.args[1])?;
    let timeout = integer(call.args[2])
        .map_err(|_| Refusal::text("ERR timeout is not an integer or out of range"))?;
    if timeout < 0 {
        return Err(Refusal::text("ERR timeout is negative"));
    }
    call.reply.integer(0);
    Ok(())
}

/// The outcome of setting a parameter, or why its value is not taken, in the words of Redis.
type Set = Result<(), String>;

/// A parameter of `CONFIG`.
struct Parameter {
    name: &'static str,
    get: fn(&Service) -> String,
    /// `None` for one that is set at the start alone.
    set: Option<fn(&Service, &str) -> Set>,
}

const fn fixed(name: &'static str, get: fn(&Service) -> String) -> Parameter {
    Parameter { name, get, set: None }
}

const fn changing(
    name: &'static str,
    get: fn(&Service) -> String,
    set: fn(&Service, &str) -> Set,
) -> Parameter {
    Parameter { name, get, set: Some(set) }
}

/// A whole number from `least` to `most`.
fn number<N: TryFrom<i128>>(text: &str, least: i64, most: i64) -> Result<N, String> {
    let no_number = "argument couldn't be parsed into an integer";
    within(integer(text.as_bytes()).map_err(|_| no_number)?, least, most)
}

fn within<N: TryFrom<i128>>(number: impl Into<i128>, least: i64, most: i64) -> Result<N, String> {
    let number = number.into();
    let is_within = (least.into()..=most.into()).contains(&number);
    let taken = N::try_from(number).ok().filter(|_| is_within);
    taken.ok_or_else(|| format!("argument must be between {least} and {most} inclusive"))
}

fn memory(text: &str) -> Result<u64, String> {
    units::bytes(text).ok_or_else(|| "argument must be a memory value".to_owned())
}

/// The meaning of a word, in letters of either size.
fn one_of<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        format!("argument(s) must be one of the following: {}", words.join(", "))
    })
}

/// Those that Redis users know, in alphabetical order.
const PARAMETERS: &[Parameter] = &[
    changing(
        "acl-pubsub-default",
        |service| match service.users.new_users_channels() {
            NewUsersChannels::All => "allchannels".to_owned(),
            NewUsersChannels::None => "resetchannels".to_owned(),
        },
        |service, text| {
            service.users.set_new_users_channels(one_of(
                text,
                &[
                    ("allchannels", NewUsersChannels::All),
                    ("resetchannels", NewUsersChannels::None),
                ],
            )?);
            Ok(())
        },
    ),
    changing(
        "acllog-max-len",
        |service| service.users.log.len_max().to_string(),
        |service, text| {
            service.users.log.set_len_max(number(text, 0, i64::MAX)?);
            Ok(())
        },
    ),
    changing(
        "appendfsync",
        |service| service.admin.settings.append_fsync().word().to_owned(),
        |service, text| {
            let level = one_of(text, &AppendFsync::ALL)?;
            service.admin.settings.set_append_fsync(level);
            service.db.set_sync_interval(level.sync_interval());
            Ok(())
        },
    ),
    fixed("appendonly", |service| yes(service.db.directory().is_some())),
    fixed("bind", |service| {
        let addresses: Vec<_> = service.admin.bind.iter().map(ToString::to_string).collect();
        addresses.join(" ")
    }),
    changing(
        "client-output-buffer-limit",
        |service| service.limits().output().to_string(),
        |service, text| {
            let limits = service.limits().output().with(text);
            service.limits().set_output(limits.map_err(|error| error.to_string())?);
            Ok(())
        },
    ),
    changing(
        "client-query-buffer-limit",
        |service| service.limits().query_bytes().to_string(),
        |service, text| {
            let bytes = within(memory(text)?, QUERY_BYTES_LEAST as i64, i64::MAX)?;
            service.limits().set_query_bytes(bytes);
            Ok(())
        },
    ),
    fixed("databases", |service| service.options.databases.to_string()),
    fixed("dir", |service| {
        service.db.directory().map_or(String::new(), |path| path.display().to_string())
    }),
    fixed("enable-debug-command", |service| {
        match service.admin.debug {
            Debug::Off => "no",
            Debug::Local => "local",
            Debug::On => "yes",
        }
        .to_owned()
    }),
    fixed("io-threads", |service| service.options.threads.to_string()),
    changing(
        "latency-monitor-threshold",
        |service| service.admin.settings.latency_millis().to_string(),
        |service, text| {
            service.admin.settings.set_latency_millis(number(text, 0, i64::MAX)?);
            Ok(())
        },
    ),
    changing(
        "maxclients",
        |service| service.limits().clients().to_string(),
        |service, text| {
            service.limits().set_clients(number(text, 1, u32::MAX.into())?);
            Ok(())
        },
    ),
    changing(
        "maxmemory",
        |service| service.admin.settings.maxmemory().unwrap_or(0).to_string(),
        |service, text| {
            service.admin.settings.set_maxmemory(memory(text)?);
            Ok(())
        },
    ),
    fixed("maxmemory-policy", |_| "noeviction".to_owned()),
    fixed("port", |service| service.admin.port.to_string()),
    changing(
        "protected-mode",
        |service| yes(service.users.is_protected()),
        |service, text| {
            let words = [("yes", ProtectedMode::On), ("no", ProtectedMode::Off)];
            let mode = one_of(text, &words).map_err(|_| "argument must be 'yes' or 'no'")?;
            service.users.set_protected_mode(mode);
            Ok(())
        },
    ),
    fixed("proto-max-bulk-len", |_| (512_u64 << 20).to_string()),
    // Passwords are set, and not shown.
    changing(
        "requirepass",
        |_| String::new(),
        |service, text| {
            let password = (!text.is_empty()).then(|| Secret::from(text));
            service.users.set_default_password(password.as_ref());
            Ok(())
        },
    ),
    changing(
        "save",
        |service| SaveRule::text(&service.admin.settings.save()),
        |service, text| {
            let rules = SaveRule::list(text).ok_or("Invalid save parameters")?;
            if !rules.is_empty() && service.db.directory().is_none() {
                let needs = "a schedule needs a directory to save in: start with --dir";
                return Err(needs.to_owned());
            }
            service.admin.settings.set_save(rules);
            Ok(())
        },
    ),
    changing(
        "slowlog-log-slower-than",
        |service| service.admin.settings.slowlog_micros().to_string(),
        |service, text| {
            service.admin.settings.set_slowlog_micros(number(text, -1, i64::MAX)?);
            Ok(())
        },
    ),
    changing(
        "slowlog-max-len",
        |service| service.admin.settings.slowlog_len().to_string(),
        |service, text| {
            service.admin.settings.set_slowlog_len(number(text, 0, i64::MAX)?);
            Ok(())
        },
    ),
    changing(
        "tcp-keepalive",
        |service| service.limits().keepalive_seconds().to_string(),
        |service, text| {
            service.limits().set_keepalive_seconds(number(text, 0, i32::MAX.into())?);
            Ok(())
        },
    ),
    changing(
        "timeout",
        |service| service.limits().idle_seconds().to_string(),
        |service, text| {
            service.limits().set_idle_seconds(number(text, 0, i32::MAX.into())?);
            Ok(())
        },
    ),
];

fn yes(is_true: bool) -> String {
    if is_true { "yes" } else { "no" }.to_owned()
}

fn config_get(call: &mut Call<'_>) -> Answer {
    let patterns: Vec<_> = call.args[2..].iter().map(|arg| arg.to_ascii_lowercase()).collect();
    let fits = |parameter: &&Parameter| {
        patterns.iter().any(|pattern| glob::matches(pattern, parameter.name.as_bytes()))
    };
    let found: Vec<_> = PARAMETERS.iter().filter(fits).collect();
    call.reply.map(found.len());
    for parameter in found {
        call.reply.bulk(parameter.name.as_bytes());
        call.reply.bulk((parameter.get)(call.service).as_bytes());
    }
    Ok(())
}

fn config_set(call: &mut Call<'_>) -> Answer {
    let pairs = &call.args[2..];
    if !pairs.len().is_multiple_of(2) {
        return Err(SYNTAX);
    }
    let mut changes = Vec::new();
    for pair in pairs.chunks(2) {
        let name = String::from_utf8_lossy(pair[0]);
        let of_name = |parameter: &&Parameter| parameter.name.eq_ignore_ascii_case(&name);
        let Some(parameter) = PARAMETERS.iter().find(of_name) else {
            return Err(Refusal::err(format!(
                "Unknown option or number of arguments for CONFIG SET - '{name}'"
            )));
        };
        let failed = |why: &str| config_set_failed(&name, why);
        let Some(set) = parameter.set else {
            return Err(failed("can't set immutable config"));
        };
        if changes.iter().any(|(other, ..): &(&Parameter, _, _)| other.name == parameter.name) {
            return Err(failed("duplicate parameter"));
        }
        let text = std::str::from_utf8(pair[1]).map_err(|_| failed("it must be text"))?;
        changes.push((parameter, set, text));
    }
    // Last, since what was there cannot be set again.
    changes.sort_by_key(|(parameter, ..)| parameter.name == "requirepass");
    let mut done: Vec<(&Parameter, String)> = Vec::new();
    for (parameter, set, text) in changes {
        let before = (parameter.get)(call.service);
        if let Err(why) = set(call.service, text) {
            // All or none.
            for (parameter, before) in done.iter().rev() {
                if let Some(set) = parameter.set {
                    // It was taken before; the error below says more.
                    let _ = set(call.service, before);
                }
            }
            return Err(config_set_failed(parameter.name, &why));
        }
        done.push((parameter, before));
    }
    // The limit may be another.
    call.service.look_at_memory(call.access.databases());
    call.reply.simple("OK");
    Ok(())
}

fn config_set_failed(name: &str, why: &str) -> Refusal {
    Refusal::err(format!("CONFIG SET failed (possibly related to argument '{name}') - {why}"))
}

fn config_resetstat(call: &mut Call<'_>) -> Answer {
    call.service.admin.tally.reset(call.service.clients.bytes());
    call.reply.simple("OK");
    Ok(())
}

fn config_rewrite(call: &mut Call<'_>) -> Answer {
    Err(match &call.service.admin.config_file {
        None => Refusal::text("ERR The server is running without a config file"),
        Some(path) => Refusal::err(format!(
            "the server does not write {}: it belongs to its editor. `CONFIG GET *` shows what \
             holds now",
            path.display()
        )),
    })
}

fn config_help(call: &mut Call<'_>) -> Answer {
    write_help(
        call,
        "CONFIG",
        &[
            "GET <pattern>",
            "    Return parameters matching the glob-like <pattern> and their values.",
            "SET <directive> <value>",
            "    Set the configuration <directive> to <value>.",
            "RESETSTAT",
            "    Reset statistics reported by the INFO command.",
            "REWRITE",
            "    Refused: the configuration file belongs to its editor.",
        ],
    );
    Ok(())
}

/// Bytes of a key and its value with what an entry costs beside them.
fn memory_usage(call: &mut Call<'_>) -> Answer {
    match call.args[3..] {
        [] => {}
        [word, count] if is(word, "samples") => {
            if integer(count)? < 0 {
                return Err(SYNTAX);
            }
        }
        _ => return Err(SYNTAX),
    }
    let key = call.args[2];
    let (keys, reply) = call.open()?;
    match keys.facts(key)? {
        None => reply.null(),
        Some(facts) => {
            let value = crate::store::format::encoded_len(facts.len, facts.expiry);
            let end = if facts.expiry.is_some() { key.len() + 8 + 32 } else { 0 };
            // A slot of the index and the head of a record take 8 bytes each.
            let bytes = 16 + (8 + key.len().next_multiple_of(8) + value.next_multiple_of(8)) + end;
            reply.integer(bytes as i64);
        }
    }
    Ok(())
}

fn memory_stats(call: &mut Call<'_>) -> Answer {
    let Memory { reserved, used } = call.access.databases().memory();
    let made: Vec<_> = call.access.databases().made().collect();
    let mut keys_count = 0;
    for (_, space) in &made {
        keys_count += space.table().len_estimate() as u64;
    }
    let per_key = used.checked_div(keys_count).unwrap_or(0);
    call.reply.map(8 + made.len());
    let numbers = [
        ("peak.allocated", info::peak(call.service, used)),
        ("total.allocated", used),
        ("startup.allocated", 0),
        ("keys.count", keys_count),
        ("keys.bytes-per-key", per_key),
        ("dataset.bytes", used),
        ("allocator.allocated", used),
        ("allocator.active", reserved),
    ];
    for (name, number) in numbers {
        call.reply.bulk(name.as_bytes());
        call.reply.integer(number as i64);
    }
    for (number, space) in made {
        call.reply.bulk(format!("db.{number}").as_bytes());
        call.reply.map(2);
        call.reply.bulk(b"overhead.hashtable.main");
        call.reply.integer(space.table().stats().index_bytes as i64);
        call.reply.bulk(b"overhead.hashtable.expires");
        call.reply.integer(space.memory_of_ends().reserved as i64);
    }
    Ok(())
}

fn memory_doctor(call: &mut Call<'_>) -> Answer {
    let Memory { reserved, used } = call.access.databases().memory();
    let text = match call.service.admin.settings.maxmemory() {
        Some(limit) if used > limit => format!(
            "{used} bytes are used, and maxmemory is {limit}: commands that need memory are \
             refused until keys are removed or maxmemory is raised.\n"
        ),
        Some(limit) if reserved > limit => format!(
            "{used} bytes are used of {reserved} that are taken, and maxmemory is {limit}: what \
             removed keys have left is being given back.\n"
        ),
        _ => "Nothing is wrong with the memory.\n".to_owned(),
    };
    call.reply.verbatim(&text);
    Ok(())
}

fn memory_help(call: &mut Call<'_>) -> Answer {
    write_help(
        call,
        "MEMORY",
        &[
            "DOCTOR",
            "    Return memory problems reports.",
            "STATS",
            "    Return information about the memory usage of the server.",
            "USAGE <key> [SAMPLES <count>]",
            "    Return memory in bytes used by <key> and its value.",
        ],
    );
    Ok(())
}

fn debug(call: &mut Call<'_>) -> Answer {
    let is_allowed = match call.service.admin.debug {
        Debug::Off => false,
        Debug::Local => call.client.entry.origin.is_local(),
        Debug::On => true,
    };
    if !is_allowed {
        return Err(Refusal::text(
            "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", \
             you can run it from a local connection, otherwise you need to set this option in the \
             configuration file, and then restart the server.",
        ));
    }
    match call.args[1..] {
        [word, seconds] if is(word, "sleep") => {
            let seconds =
                Duration::try_from_secs_f64(float(seconds)?).map_err(|_| NOT_AN_INTEGER)?;
            call.job = Some(Job::new(move |out| {
                std::thread::sleep(seconds);
                out.extend_from_slice(b"+OK\r\n");
            }));
        }
        [word, switch] if is(word, "set-active-expire") => {
            call.service.set_active_expiry(integer(switch)? != 0);
            call.reply.simple("OK");
        }
        [word] if is(word, "jmap") => call.reply.simple("OK"),
        [word, ..] => {
            let word = String::from_utf8_lossy(&word[..word.len().min(128)]);
            return Err(Refusal::err(format!("unknown subcommand '{word}'. Try DEBUG HELP.")));
        }
        [] => return Err(Refusal::arguments("debug")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_units_of_redis() {
        for (text, number) in [
            ("0", Some(0)),
            ("100", Some(100)),
            ("2kb", Some(2048)),
            ("2K", Some(2000)),
            ("3mb", Some(3 << 20)),
            ("1GB", Some(1 << 30)),
            ("7b", Some(7)),
            ("-1", None),
            ("x", None),
            ("99999999999999gb", None),
        ] {
            assert_eq!(units::bytes(text), number, "{text}");
        }
        assert!(PARAMETERS.is_sorted_by_key(|parameter| parameter.name));
    }
}
