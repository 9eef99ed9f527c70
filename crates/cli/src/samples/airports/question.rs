//! The questions: which flights, in which groups, and by which executors they are answered.

use sapwood::aggregate::{Aggregate, Execution, Group, OrderBy, Query, Selection};
use serde_json::{Value, json};

use crate::samples::answer::{Answer, Effort, equal, listing};
use crate::samples::flight::{Code, Flight};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::format::{count, plural};
use crate::terminal::ui::Ui;

use super::plain::{self, Figures, Label};
use super::record;
use super::tables::Tables;
use super::ways::{self, Way, every_way};

pub(super) struct Question {
    /// Names it for machines.
    name: &'static str,
    question: &'static str,
    /// Above the labels of the groups.
    heading: &'static str,
    selected: Selected,
    /// As [`Group`] reads it, and the same of a row.
    by: &'static str,
    label: fn(&Flight) -> Label,
    /// A number that the flights of a group have in common, for people.
    number: fn(i64) -> String,
    sorted: Sorted,
}

/// Which flights.
#[derive(Clone, Copy)]
enum Selected {
    All,
    /// A prefix of the keys.
    Month(u8),
    /// A longer prefix.
    Day(u8, u8),
    /// A list of keys.
    Plane(Code<6>),
}

/// Which groups are shown, and in which order.
#[derive(Clone, Copy)]
enum Sorted {
    ByGroup,
    LatestFirst,
    /// Of groups of at least so many flights, so many.
    LatestOf {
        flights_min: u64,
        limit: usize,
    },
}

/// From how many minutes on a delay falls into a class; earlier ones are below.
const CLASSES: [i64; 4] = [1, 15, 60, 180];

pub(super) const QUESTIONS: [Question; 4] = [
    Question {
        name: "carriers",
        question: "Which carriers left latest, of those with 1,000 flights?",
        heading: "carrier",
        selected: Selected::All,
        by: "carrier",
        label: |flight| Label::Text(flight.id.carrier.to_string()),
        number: |number| number.to_string(),
        sorted: Sorted::LatestOf { flights_min: 1000, limit: 10 },
    },
    Question {
        name: "airports",
        question: "From which airport did flights leave latest in July?",
        heading: "airport",
        selected: Selected::Month(7),
        by: "origin",
        label: |flight| Label::Text(flight.details.origin.to_string()),
        number: |number| number.to_string(),
        sorted: Sorted::LatestFirst,
    },
    Question {
        name: "hours",
        question: "How late did flights leave on the 8th of March, by the hour?",
        heading: "hour",
        selected: Selected::Day(3, 8),
        by: "hour",
        label: |flight| Label::Number(record::hour(flight).into()),
        number: |hour| format!("{hour:02}:00"),
        sorted: Sorted::ByGroup,
    },
    Question {
        name: "delay_classes",
        question: "How often was the plane N14228 late, in classes of minutes?",
        heading: "delay",
        selected: Selected::Plane(Code(*b"N14228")),
        by: "classes(dep_delay, 1, 15, 60, 180) as class",
        label: class,
        number: |bound| format!("from {bound} min"),
        sorted: Sorted::ByGroup,
    },
];

fn class(flight: &Flight) -> Label {
    let Some(delay) = flight.details.dep_delay else {
        return Label::Missing;
    };
    let reached = CLASSES.iter().rev().find(|bound| i64::from(delay) >= **bound);
    reached.map_or(Label::Below, |bound| Label::Number(*bound))
}

impl Selected {
    fn contains(self, flight: &Flight) -> bool {
        match self {
            Self::All => true,
            Self::Month(month) => flight.id.month == month,
            Self::Day(month, day) => (flight.id.month, flight.id.day) == (month, day),
            Self::Plane(plane) => flight.details.tailnum == plane,
        }
    }

    fn selection(self, rows: &[Flight]) -> Selection {
        match self {
            Self::All => Selection::EVERYTHING,
            Self::Month(month) => Selection::prefix(record::month(month)),
            Self::Day(month, day) => Selection::prefix(record::day(month, day)),
            Self::Plane(_) => {
                let flights = rows.iter().filter(|flight| self.contains(flight));
                Selection::keys(flights.map(|flight| {
                    let mut key = Vec::new();
                    record::encode_key(flight, &mut key);
                    key
                }))
            }
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Month(_) | Self::Day(..) => "a prefix of the keys",
            Self::Plane(_) => "a list of keys",
        }
    }
}

impl Question {
    pub(super) fn answer(
        &self,
        tables: &Tables,
        rows: &[Flight],
        threads: u16,
        ui: &Ui,
    ) -> Outcome {
        let query = self.query(rows)?.compile().map_err(sapwood::Error::from)?;
        let execution = Execution::new().threads(threads.into()).cancel(ui.interrupt.cancel());
        let (answer, ways) = every_way(tables, &query, &execution)?;
        let figures = plain::of_answer(&answer)?;
        let expected = self.expected(rows);
        plain::check(&figures, &expected)?;
        let selected = rows.iter().filter(|flight| self.selected.contains(flight)).count() as u64;
        equal("flights selected", answer.tally.selected, selected)?;

        Answer {
            name: self.name,
            question: self.question.to_owned(),
            text: format!(
                "{}\n\n{} by {}, {}:\n{}",
                self.figures_listing(&figures),
                plural(selected as usize, "flight"),
                plural(threads.into(), "thread"),
                self.selected.describe(),
                ways::listing_of(&ways),
            ),
            json: json!({
                "by": self.by,
                "selected": selected,
                "threads": threads,
                "rows": figures.iter().map(as_json).collect::<Value>(),
                "ways": ways.iter().map(Way::as_json).collect::<Value>(),
            }),
            effort: Effort { work: selected, unit: "flights", elapsed: ways::fastest(&ways) },
            verified: "every way in both tables has the same answer, and each figure is that of a \
                       plain loop over the rows",
        }
        .print_as("airports", ui)
    }

    fn query(&self, rows: &[Flight]) -> Outcome<Query> {
        let failed = |error| Failure::from(sapwood::Error::Syntax(error));
        let query = Query::new(record::layout())
            .select(self.selected.selection(rows))
            .group_by(Group::list(self.by).map_err(failed)?)
            .aggregates(Aggregate::list(plain::COLUMNS).map_err(failed)?);
        let latest_first = || OrderBy::list("mean desc").map_err(failed);
        Ok(match self.sorted {
            Sorted::ByGroup => query,
            Sorted::LatestFirst => query.order_by(latest_first()?),
            Sorted::LatestOf { flights_min, limit } => query
                .having(format!("flights >= {flights_min}").parse().map_err(failed)?)
                .order_by(latest_first()?)
                .limit(limit),
        })
    }

    /// The rows of the answer, by plain loops.
    fn expected(&self, rows: &[Flight]) -> Vec<Figures> {
        let selected = rows.iter().filter(|flight| self.selected.contains(flight));
        let mut figures = plain::figures(selected, self.label);
        match self.sorted {
            Sorted::ByGroup => {}
            Sorted::LatestFirst => figures.sort_by(plain::latest_first),
            Sorted::LatestOf { flights_min, limit } => {
                figures.retain(|figures| figures.flights >= flights_min);
                figures.sort_by(plain::latest_first);
                figures.truncate(limit);
            }
        }
        figures
    }

    fn figures_listing(&self, figures: &[Figures]) -> comfy_table::Table {
        let mut listing = listing(&[
            self.heading,
            "flights",
            "left",
            "mean delay",
            "deviation",
            "median",
            "worst",
            "to airports",
            "most to",
        ]);
        let number = |number: Option<f64>| number.map_or("-".to_owned(), |n| format!("{n:.1}"));
        for figures in figures {
            listing.add_row([
                self.label_text(&figures.label),
                count(figures.flights),
                count(figures.left),
                number(figures.mean),
                number(figures.deviation),
                number(figures.median),
                figures.worst.map_or("-".to_owned(), |worst| worst.to_string()),
                count(figures.airports),
                format!("{} {}", figures.most.0, count(figures.most.1)),
            ]);
        }
        ways::align_right(&mut listing, 1..8);
        listing
    }

    fn label_text(&self, label: &Label) -> String {
        match label {
            Label::Text(text) => text.clone(),
            Label::Missing => "never left".to_owned(),
            Label::Below => "early or on time".to_owned(),
            Label::Number(number) => (self.number)(*number),
        }
    }
}

fn as_json(figures: &Figures) -> Value {
    let label = match &figures.label {
        Label::Below => json!("below"),
        Label::Number(number) => json!(number),
        Label::Text(text) => json!(text),
        Label::Missing => Value::Null,
    };
    json!({
        "group": label,
        "flights": figures.flights,
        "left": figures.left,
        "mean": figures.mean,
        "deviation": figures.deviation,
        "median": figures.median,
        "worst": figures.worst,
        "airports": figures.airports,
        "most": figures.most.0,
        "most_flights": figures.most.1,
    })
}
