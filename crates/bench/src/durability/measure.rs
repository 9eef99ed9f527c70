//! The order of measurements.

use super::checkpoints::{self, Beside};
use super::floor::Floor;
use super::log_bytes::{self, LogBytes};
use super::recovery::{self, Recovered};
use super::store::Engine;
use super::workload::Workload;
use super::{Part, Plan, levels};
use crate::Error;
use crate::figures::{Rate, Rates};
use crate::rounds::progress;

/// All figures of a run.
pub(crate) struct Figures {
    pub(crate) plan: Plan,
    pub(crate) rates: Rates<Workload>,
    /// Bytes a second of logs.
    pub(crate) log_rates: Vec<Rate<Workload>>,
    pub(crate) floor: Floor,
    pub(crate) checkpoints: Vec<Beside>,
    /// Entries that checkpoints were written of.
    pub(crate) checkpointed: u32,
    pub(crate) recovered: Vec<Recovered>,
    pub(crate) log_bytes: Vec<LogBytes>,
}

impl Figures {
    /// Notes once what is left out.
    pub(crate) fn leave_out(&mut self, sentence: String) {
        if !self.rates.wrong.contains(&sentence) {
            self.rates.wrong.push(sentence);
        }
    }
}

pub(crate) fn measure(plan: &Plan, engines: &[Engine]) -> Result<Figures, Error> {
    let mut figures = Figures {
        plan: plan.clone(),
        rates: Rates::default(),
        log_rates: Vec::new(),
        floor: Floor::default(),
        checkpoints: Vec::new(),
        checkpointed: checkpoints::entries(plan),
        recovered: Vec::new(),
        log_bytes: Vec::new(),
    };
    for part in Part::ALL.into_iter().filter(|part| plan.parts.contains(part)) {
        let bar = progress(match part {
            Part::Levels => levels::turns(plan, engines),
            Part::Checkpoints => checkpoints::turns(plan),
            Part::Recovery => recovery::turns(plan),
            Part::LogBytes => log_bytes::turns(plan),
        });
        match part {
            Part::Levels => levels::measure(plan, engines, &mut figures, &bar)?,
            Part::Checkpoints => checkpoints::measure(plan, &mut figures, &bar)?,
            Part::Recovery => recovery::measure(plan, &mut figures, &bar)?,
            Part::LogBytes => log_bytes::measure(plan, &mut figures, &bar)?,
        }
        bar.finish_and_clear();
    }
    Ok(figures)
}
