//! `--explain`: how columns are read and rows reached, what that was expected to cost and what it
//! did.

use std::io::Write;

use sapwood::aggregate::{Accuracy, Answer, Layout, Plan, Tally};
use serde_json::{Value, json};

use crate::terminal::exit::Outcome;
use crate::terminal::format::{count, time};
use crate::terminal::ui::{Answers, Ui};

pub(super) struct Explained<'a> {
    pub(super) layout: &'a Layout,
}

impl Explained<'_> {
    /// For people, how columns are read.
    pub(super) fn columns(&self, ui: &Ui) -> Outcome {
        match ui.answers {
            Answers::Json => Ok(()),
            Answers::Text => ui.print(|out| {
                writeln!(out, "columns are read as")?;
                self.layout.fields().iter().try_for_each(|field| writeln!(out, "  {field}"))
            }),
        }
    }

    /// For people, what is known before the run.
    pub(super) fn plan(&self, plan: &Plan, ui: &Ui) -> Outcome {
        match ui.answers {
            Answers::Json => Ok(()),
            // It ends its last line, so that the answer stands apart.
            Answers::Text => ui.print(|out| writeln!(out, "{plan}")),
        }
    }

    /// For people, what the run measured; for machines, all.
    pub(super) fn after(&self, plan: &Plan, answer: &Answer, ui: &Ui) -> Outcome {
        match ui.answers {
            Answers::Json => {
                let mut object = self.as_json(plan);
                object["answer"] = of_answer(answer);
                ui.print_json(&json!({ "explain": object }))
            }
            Answers::Text => ui.print(|out| writeln!(out, "\n{}", truth(plan))),
        }
    }

    /// The plan of what does not run.
    pub(super) fn dry(&self, plan: &Plan, ui: &Ui) -> Outcome {
        match ui.answers {
            Answers::Json => ui.print_json(&json!({ "explain": self.as_json(plan) })),
            Answers::Text => ui.print(|out| write!(out, "{plan}")),
        }
    }

    fn as_json(&self, plan: &Plan) -> Value {
        let mut object = plan_as_json(plan);
        object["layout"] = json!(self.layout.to_string());
        object
    }
}

/// The plan, and what was measured of it, under their names.
fn plan_as_json(plan: &Plan) -> Value {
    let candidates = plan.candidates.iter().map(|candidate| {
        json!({
            "executor": candidate.executor.to_string(),
            "visits": candidate.visits,
            "read_back_bytes": candidate.read_back_bytes,
            "estimate_seconds": candidate.estimate.as_secs_f64(),
        })
    });
    let measured = plan.measured.map(|measured| {
        json!({
            "seconds": measured.elapsed.as_secs_f64(),
            "visited": measured.visited,
            "selected": measured.selected,
        })
    });
    json!({
        "executor": plan.executor.to_string(),
        "forced": plan.is_forced,
        "threads": plan.threads,
        "candidates": candidates.collect::<Value>(),
        "measured": measured,
    })
}

fn of_answer(answer: &Answer) -> Value {
    let columns = answer.columns.iter().map(|column| {
        let (kind, bound) = match column.accuracy {
            Accuracy::Exact => ("exact", Value::Null),
            Accuracy::Rounded => ("rounded once", Value::Null),
            Accuracy::Within(share) => ("relative error", json!(share)),
            Accuracy::Estimated { standard_error, .. } => {
                ("relative standard error", json!(standard_error))
            }
            Accuracy::Bounded => ("bounds with each count", Value::Null),
        };
        json!({ "name": column.name, "accuracy": kind, "at_most": bound })
    });
    let Tally { selected, matched, mismatched, missing, absent, .. } = answer.tally;
    json!({
        "columns": columns.collect::<Value>(),
        "groups": answer.groups,
        "selected": selected,
        "matched": matched,
        "mismatched": mismatched,
        "missing": missing,
        "absent_keys": absent,
    })
}

/// `measured: ...`: what became of the estimate.
fn truth(plan: &Plan) -> String {
    let Some(measured) = plan.measured else {
        return String::new();
    };
    let expected = plan.expected();
    let times = measured.elapsed.as_secs_f64() / expected.estimate.as_secs_f64().max(1e-9);
    format!(
        "{} visited {}, selected {}, in {}: {times:.2} times the estimate of {}",
        plan.executor,
        count(measured.visited),
        count(measured.selected),
        time(measured.elapsed),
        time(expected.estimate)
    )
}
