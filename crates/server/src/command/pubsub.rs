//! Messages from clients to clients.

use crate::catalog::{Categories, Flags};
use crate::clients::{Kind, Subscriptions};
use crate::command::arguments::{help, subcommand_arguments};
use crate::command::{Answer, Call, Command, Run};
use crate::refusal::Refusal;

const fn pubsub(name: &'static str, arity: isize, run: Run) -> Command {
    Command::new("pubsub", name, arity, run).categories(Categories::PUBSUB).flags(Flags::PUBSUB)
}

const fn subscription(name: &'static str, arity: isize, run: Run) -> Command {
    pubsub(name, arity, run).flags(Flags::WHILE_LISTENING)
}

pub(crate) const COMMANDS: &[Command] = &[
    subscription("subscribe", -2, |call| subscribe(call, Kind::Channel)).about(
        "2.0.0",
        "channel [channel ...]",
        "Listens for messages published to channels.",
    ),
    subscription("unsubscribe", -1, |call| unsubscribe(call, Kind::Channel)).about(
        "2.0.0",
        "[channel [channel ...]]",
        "Stops listening to messages posted to channels.",
    ),
    subscription("psubscribe", -2, |call| subscribe(call, Kind::Pattern)).about(
        "2.0.0",
        "pattern [pattern ...]",
        "Listens for messages published to channels that match one or more patterns.",
    ),
    subscription("punsubscribe", -1, |call| unsubscribe(call, Kind::Pattern)).about(
        "2.0.0",
        "[pattern [pattern ...]]",
        "Stops listening to messages published to channels that match one or more patterns.",
    ),
    subscription("ssubscribe", -2, |call| subscribe(call, Kind::ShardChannel)).about(
        "7.0.0",
        "shardchannel [shardchannel ...]",
        "Listens for messages published to shard channels.",
    ),
    subscription("sunsubscribe", -1, |call| unsubscribe(call, Kind::ShardChannel)).about(
        "7.0.0",
        "[shardchannel [shardchannel ...]]",
        "Stops listening to messages posted to shard channels.",
    ),
    pubsub("publish", 3, |call| publish(call, Kind::Channel))
        .fast()
        .flags(Flags::MAY_REPLICATE)
        .about("2.0.0", "channel message", "Posts a message to a channel."),
    pubsub("spublish", 3, |call| publish(call, Kind::ShardChannel))
        .fast()
        .flags(Flags::MAY_REPLICATE)
        .about("7.0.0", "shardchannel message", "Post a message to a shard channel"),
    Command::new("pubsub", "pubsub", -2, |_| Err(Refusal::arguments("pubsub")))
        .about("2.8.0", "", "A container for Pub/Sub commands.")
        .subcommands(PUBSUB),
];

const PUBSUB: &[Command] = &[
    pubsub("pubsub|channels", -2, |call| channels(call, Kind::Channel)).about(
        "2.8.0",
        "[pattern]",
        "Returns the active channels.",
    ),
    pubsub("pubsub|numsub", -2, |call| numsub(call, Kind::Channel)).about(
        "2.8.0",
        "[channel [channel ...]]",
        "Returns a count of subscribers to channels.",
    ),
    pubsub("pubsub|numpat", 2, numpat).about(
        "2.8.0",
        "",
        "Returns a count of unique pattern subscriptions.",
    ),
    pubsub("pubsub|shardchannels", -2, |call| channels(call, Kind::ShardChannel)).about(
        "7.0.0",
        "[pattern]",
        "Returns the active shard channels.",
    ),
    pubsub("pubsub|shardnumsub", -2, |call| numsub(call, Kind::ShardChannel)).about(
        "7.0.0",
        "[shardchannel [shardchannel ...]]",
        "Returns the count of subscribers of shard channels.",
    ),
    Command::new("pubsub", "pubsub|help", 2, print_help).about(
        "6.2.0",
        "",
        "Returns helpful text about the different subcommands.",
    ),
];

/// The refusal of a command in the mode of version 2 in which a client gets messages.
pub(crate) fn only_these(name: &str) -> Refusal {
    Refusal::err(format!(
        "Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are \
         allowed in this context"
    ))
}

/// Writes the messages that have come before the reply.
pub(crate) fn deliver(call: &mut Call<'_>) {
    let mailbox = &call.client.entry.mailbox;
    if mailbox.has_messages() {
        let messages = mailbox.take();
        mailbox.sent();
        call.reply.written(&messages);
    }
}

fn reply(call: &mut Call<'_>, name: &str, channel: Option<&[u8]>, kind: Kind) {
    let count = call.client.subscriptions.as_ref().map_or(0, |all| all.count(kind));
    call.reply.push(3);
    call.reply.bulk(name.as_bytes());
    match channel {
        Some(channel) => call.reply.bulk(channel),
        None => call.reply.null(),
    }
    call.reply.integer(count as i64);
}

fn subscribe(call: &mut Call<'_>, kind: Kind) -> Answer {
    // From here on messages may come: the version of the protocol must be known.
    call.client.show(|_| {});
    for name in &call.args[1..] {
        let all = call.client.subscriptions.get_or_insert_with(Box::<Subscriptions>::default);
        if all.of_mut(kind).insert((*name).into()) {
            call.service.clients.channels.subscribe(kind, name, &call.client.entry);
        }
        reply(call, call.command.name, Some(name), kind);
    }
    Ok(())
}

fn unsubscribe(call: &mut Call<'_>, kind: Kind) -> Answer {
    let names: Vec<Box<[u8]>> = match &call.args[1..] {
        [] => {
            let all = call.client.subscriptions.as_ref();
            all.map_or_else(Vec::new, |all| all.of(kind).iter().cloned().collect())
        }
        names => names.iter().map(|name| Box::from(*name)).collect(),
    };
    let name_of_command = call.command.name;
    for name in &names {
        let all = call.client.subscriptions.as_deref_mut();
        if all.is_some_and(|all| all.of_mut(kind).remove(name)) {
            call.service.clients.channels.unsubscribe(kind, name, &call.client.entry);
        }
        if call.client.subscriptions.as_ref().is_some_and(|all| all.is_empty()) {
            call.client.subscriptions = None;
        }
        // Its messages come before the reply that says that there will be no more.
        deliver(call);
        reply(call, name_of_command, Some(name), kind);
    }
    if names.is_empty() {
        reply(call, name_of_command, None, kind);
    }
    Ok(())
}

fn publish(call: &mut Call<'_>, kind: Kind) -> Answer {
    let (channel, message) = (call.args[1], call.args[2]);
    let clients = &call.service.clients;
    let bytes_max = clients.limits.unread_bytes(true);
    let receivers = clients.channels.publish(kind, channel, message, bytes_max);
    call.reply.integer(receivers as i64);
    Ok(())
}

fn channels(call: &mut Call<'_>, kind: Kind) -> Answer {
    let pattern = match call.args[2..] {
        [] => None,
        [pattern] => Some(pattern),
        _ => return Err(subcommand_arguments(call.args)),
    };
    let names = call.service.clients.channels.names(kind, pattern);
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name));
    Ok(())
}

fn numsub(call: &mut Call<'_>, kind: Kind) -> Answer {
    let names = &call.args[2..];
    call.reply.array(names.len() * 2);
    for name in names {
        call.reply.bulk(name);
        call.reply.integer(call.service.clients.channels.subscribers(kind, name) as i64);
    }
    Ok(())
}

fn numpat(call: &mut Call<'_>) -> Answer {
    call.reply.integer(call.service.clients.channels.count(Kind::Pattern) as i64);
    Ok(())
}

fn print_help(call: &mut Call<'_>) -> Answer {
    help(
        &mut call.reply,
        "PUBSUB",
        &[
            "CHANNELS [<pattern>]",
            "    Return the currently active channels matching a <pattern> (default: '*').",
            "NUMPAT",
            "    Return number of subscriptions to patterns.",
            "NUMSUB [<channel> ...]",
            "    Return the number of subscribers for the specified channels, excluding",
            "    pattern subscriptions(default: no channels).",
            "SHARDCHANNELS [<pattern>]",
            "    Return the currently active shard level channels matching a <pattern> (default: \
             '*').",
            "SHARDNUMSUB [<shardchannel> ...]",
            "    Return the number of subscribers for the specified shard level channel(s)",
        ],
    );
    Ok(())
}
