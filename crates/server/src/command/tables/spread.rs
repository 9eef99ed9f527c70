//! A total, spread over a field of entries.

use std::time::Duration;

use sapwood::aggregate::{Disaggregated, Disaggregation, DisaggregationRun};

use crate::command::arguments::{integer, is};
use crate::command::{Answer, Call};
use crate::jobs::Effect;
use crate::protocol::reply::Reply;
use crate::refusal::{NOT_AN_INTEGER, Refusal};

use super::question::{Scope, no_layout};
use super::words::{Words, shown};
use super::work::{Work, start};
use super::{cells, misfit, open, refused};

/// About what an entry costs that is collected and changed.
const ENTRY_NS: u64 = 30;

/// By what the parts differ.
enum Parts<'a> {
    Equal,
    InProportionTo(&'a str),
    Weights(Vec<(&'a [u8], u64)>),
}

pub(super) fn disaggregate(call: &mut Call<'_>) -> Answer {
    let args = call.args;
    let no_field = |_| Refusal::err(format!("there is no field '{}'", shown(args[2])));
    let field = std::str::from_utf8(args[2]).map_err(no_field)?;
    let total = std::str::from_utf8(args[3]).ok().and_then(|text| text.parse().ok());
    let total: i128 = total.ok_or(NOT_AN_INTEGER)?;
    let mut scope = Scope::new(call.service.options.threads);
    let (mut is_adding, mut parts, mut rest) = (false, Parts::Equal, None);
    let mut words = Words::new(&args[4..]);
    while let Some(word) = words.keyword() {
        if is(word, "set") {
            is_adding = false;
        } else if is(word, "add") {
            is_adding = true;
        } else if is(word, "equally") {
            parts = Parts::Equal;
        } else if is(word, "by") {
            parts = Parts::InProportionTo(words.text()?);
        } else if is(word, "weights") {
            parts = Parts::Weights(weights(words.counted(2)?)?);
        } else if is(word, "rest") {
            rest = Some(words.value()?);
        } else if !scope.take(word, &mut words)? {
            return words.unknown();
        }
    }
    let (table, _) = open(call)?;
    let layout = scope.layout(table).ok_or_else(|| no_layout(table))?;
    let mut what = Disaggregation::new(layout, field, total);
    what = what.select(scope.selection).mismatches(scope.mismatches);
    if let Some(filter) = scope.filter {
        what = what.filter(filter);
    }
    what = match parts {
        Parts::Equal => what.equally(),
        Parts::InProportionTo(field) => what.in_proportion_to(field),
        Parts::Weights(weights) => what.weights(weights),
    };
    what = if is_adding { what.adding() } else { what.setting() };
    let by = what.compile().map_err(misfit)?;
    let rest = rest.map(|rest| by.decode(rest)).transpose().map_err(misfit)?;
    let run = scope.run;
    start(call, Effect::Changes, run.telling(), move |work: &Work<'_>, reply| {
        let entries = match by.selection().as_keys() {
            Some(keys) => keys.len(),
            None => work.table.len_estimate(),
        };
        let alone = Duration::from_nanos((entries as u64).saturating_mul(ENTRY_NS));
        let run = run.run(work, alone, |execution| match rest {
            Some(rest) => work.table.resume(&by, rest, execution),
            None => work.table.disaggregate_with(&by, execution),
        });
        report(reply, &run.map_err(refused)?);
        Ok(())
    })
}

fn weights<'a>(pairs: &[&'a [u8]]) -> Result<Vec<(&'a [u8], u64)>, Refusal> {
    let (pairs, _) = pairs.as_chunks::<2>();
    let weight = |&[key, weight]: &[&'a [u8]; 2]| {
        let weight = u64::try_from(integer(weight)?).map_err(|_| NOT_AN_INTEGER)?;
        Ok((key, weight))
    };
    pairs.iter().map(weight).collect()
}

/// What was done, and what is left: `rest` goes on with it.
fn report(reply: &mut Reply<'_>, run: &DisaggregationRun) {
    let DisaggregationRun { report, pending, stopped, .. } = run;
    let Disaggregated { tally, .. } = report;
    reply.map(16);
    for (name, number) in [
        ("selected", tally.selected.into()),
        ("matched", tally.matched.into()),
        ("mismatched", tally.mismatched.into()),
        ("absent", tally.absent.into()),
        ("changed", report.changed.into()),
        ("vanished", report.vanished.into()),
        ("refused", report.refused.into()),
        ("pending", report.pending.into()),
        ("total", report.total),
        ("given", report.given),
        ("not_given", report.not_given),
    ] {
        reply.bulk(name.as_bytes());
        cells::whole(reply, number);
    }
    for (name, sum) in [("sum_before", &report.sum_before), ("sum_after", &report.sum_after)] {
        reply.bulk(name.as_bytes());
        cells::optional(reply, sum.as_ref());
    }
    reply.bulk(b"refusal");
    cells::text(reply, report.first_refusal.as_ref().map(ToString::to_string).as_deref());
    reply.bulk(b"stopped");
    cells::text(reply, stopped.as_ref().map(ToString::to_string).as_deref());
    reply.bulk(b"rest");
    match pending {
        Some(pending) => reply.bulk(&pending.encode()),
        None => reply.null(),
    }
}
