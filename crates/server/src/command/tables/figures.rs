//! Figures of entries.

use sapwood::aggregate::{Compiled, Partial, Plan};

use crate::command::{Answer, Call};
use crate::jobs::Effect;
use crate::protocol::reply::Reply;
use crate::refusal::Refusal;

use super::question::{Asked, Form, Question};
use super::words::Words;
use super::work::{Telling, Work, start};
use super::{cells, misfit, open, refused};

fn question(call: &mut Call<'_>, asked: Asked) -> Result<(Question, Compiled), Refusal> {
    let threads = call.service.options.threads;
    let mut words = Words::new(&call.args[2..]);
    let (table, _) = open(call)?;
    let question = Question::parse(&mut words, table, threads, asked)?;
    let query = question.query.compile().map_err(misfit)?;
    Ok((question, query))
}

pub(super) fn aggregate(call: &mut Call<'_>) -> Answer {
    let (question, query) = question(call, Asked::Aggregate)?;
    start(call, Effect::Reads, question.run.telling(), move |work: &Work<'_>, reply| {
        let plan = work.table.explain(&query, &question.run.execution()).map_err(refused)?;
        let partial = question.run.run(work, plan.expected().estimate, |execution| {
            Ok(work.table.aggregate_with(&query, execution)?.partial)
        });
        answer(&query, partial.map_err(refused)?, question.form, reply)
    })
}

fn answer(query: &Compiled, partial: Partial, form: Form, reply: &mut Reply<'_>) -> Answer {
    match form {
        Form::State => reply.bulk(&partial.encode()),
        Form::Rows => cells::answer(reply, &query.finish(partial).map_err(misfit)?),
    }
    Ok(())
}

pub(super) fn merge(call: &mut Call<'_>) -> Answer {
    let (question, query) = question(call, Asked::Merge)?;
    start(call, Effect::Reads, Telling::Nothing, move |work: &Work<'_>, reply| {
        let mut merged = query.empty();
        for state in &question.states {
            work.check_cancelled()?;
            let state = query.decode(state).map_err(misfit)?;
            merged = query.merge(merged, state).map_err(misfit)?;
        }
        answer(&query, merged, question.form, reply)
    })
}

pub(super) fn explain(call: &mut Call<'_>) -> Answer {
    let (question, query) = question(call, Asked::Explain)?;
    let (table, reply) = open(call)?;
    let run = question.run;
    let alone = table.explain(&query, &run.execution()).map_err(refused)?;
    let threads = run.threads(alone.expected().estimate);
    let plan = table.explain(&query, &run.execution().threads(threads)).map_err(refused)?;
    write_plan(reply, &plan);
    Ok(())
}

fn write_plan(reply: &mut Reply<'_>, plan: &Plan) {
    reply.map(4);
    reply.bulk(b"executor");
    reply.bulk(plan.executor.to_string().as_bytes());
    reply.bulk(b"forced");
    reply.boolean(plan.is_forced);
    reply.bulk(b"threads");
    cells::count(reply, plan.threads as u64);
    reply.bulk(b"candidates");
    reply.array(plan.candidates.len());
    for candidate in &plan.candidates {
        reply.map(3);
        reply.bulk(b"executor");
        reply.bulk(candidate.executor.to_string().as_bytes());
        reply.bulk(b"visits");
        cells::count(reply, candidate.visits);
        reply.bulk(b"seconds");
        reply.double(candidate.estimate.as_secs_f64());
    }
}
