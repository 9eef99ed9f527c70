//! Arguments as numbers and options, and the help for those of subcommands.

use crate::protocol::reply::Reply;
use crate::protocol::request;
use crate::refusal::{NO_DATABASE, NOT_A_FLOAT, NOT_AN_INTEGER, Refusal, SYNTAX};

/// An integer as Redis reads it.
pub(crate) fn integer(argument: &[u8]) -> Result<i64, Refusal> {
    request::integer(argument).ok_or(NOT_AN_INTEGER)
}

/// The number of a database, as Redis reads it.
pub(crate) fn database(argument: &[u8], count: usize) -> Result<usize, Refusal> {
    const TOO_LARGE: Refusal =
        Refusal::text("ERR value is out of range, value must between -2147483648 and 2147483647");
    let number = i32::try_from(integer(argument)?).map_err(|_| TOO_LARGE)?;
    let number = usize::try_from(number).map_err(|_| NO_DATABASE)?;
    if number < count { Ok(number) } else { Err(NO_DATABASE) }
}

/// A floating-point number: digits, an exponent, or infinity; not NaN.
pub(crate) fn float(argument: &[u8]) -> Result<f64, Refusal> {
    // Redis has a buffer of so many bytes, and its end is one of them.
    const BYTES_LIMIT: usize = 5 * 1024;
    if argument.len() >= BYTES_LIMIT {
        return Err(NOT_A_FLOAT);
    }
    let text = std::str::from_utf8(argument).map_err(|_| NOT_A_FLOAT)?;
    let number: f64 = text.parse().map_err(|_| NOT_A_FLOAT)?;
    if number.is_nan() { Err(NOT_A_FLOAT) } else { Ok(number) }
}

/// Whether an argument is a word, in letters of either size.
pub(crate) fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// A number of arguments that a subcommand does not take, though there may be several.
pub(crate) fn subcommand_arguments(args: &[&[u8]]) -> Refusal {
    let [command, subcommand, ..] = args else { return SYNTAX };
    let subcommand = String::from_utf8_lossy(&subcommand[..subcommand.len().min(128)]);
    let command = String::from_utf8_lossy(command).to_uppercase();
    Refusal::err(format!(
        "unknown subcommand or wrong number of arguments for '{subcommand}'. Try {command} HELP."
    ))
}

/// The answer of a `HELP` subcommand.
pub(crate) fn help(reply: &mut Reply<'_>, command: &str, lines: &[&str]) {
    reply.array(lines.len() + 3);
    reply.simple(&format!("{command} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    lines.iter().for_each(|line| reply.simple(line));
    reply.simple("HELP");
    reply.simple("    Print this help.");
}
