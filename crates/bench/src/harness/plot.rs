//! Figures drawn: a page of panels, one for each workload, each with a bar for every engine.
//!
//! *Useful for* seeing ours beside peers at a glance, with the spread of the runs.
//! *Not useful for* latencies, whose tails need an axis of their own: they are left out.
//!
//! A panel has its own scale, which begins at zero: rates of a workload on so many threads compare,
//! those of two panels do not.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::harness::*;

const TITLE: &str = "Sapwood beside its peers";

/// Pixels of the page's width, and of the margin around it.
const WIDTH: i32 = 1080;
const MARGIN: i32 = 20;
const COLUMNS: usize = 3;
const COLUMN: i32 = (WIDTH - 2 * MARGIN) / COLUMNS as i32;
/// Pixels of a panel's width that names of engines have, and figures behind the bars.
const NAMES: i32 = 150;
const NUMBERS: i32 = 58;
const BARS: i32 = COLUMN - NAMES - NUMBERS - 12;
/// Pixels from one bar to the next, of a bar, and above the first one.
const LINE: i32 = 18;
const BAR: i32 = 12;
const PANEL_HEAD: i32 = 24;
const PANEL_FOOT: i32 = 14;
const GROUP_HEAD: i32 = 32;
/// Pixels of the title, of a line below it, and how many letters that has at most.
const TITLE_HEIGHT: i32 = 40;
const HEAD_LINE: i32 = 16;
const LETTERS_MAX: usize = 150;

/// A page of its own colour: it reads the same on light and on dark surroundings.
const PAPER: &str = "#ffffff";
const INK: &str = "#24292f";
const FAINT_INK: &str = "#57606a";
const OURS: &str = "#1f883d";
const PEERS: &str = "#8c959f";
const FLOORS: &str = "#d4d9de";

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct PlottedFigure {
    bench: String,
    workload: String,
    threads: usize,
    entries: usize,
    data: String,
    engine: String,
    unit: String,
    median: f64,
    min: f64,
    max: f64,
    runs: usize,
    machine: Option<String>,
}

impl PlottedFigure {
    /// Panels with the same one stand below one head.
    fn group(&self) -> (&str, usize, &str) {
        (&self.bench, self.entries, &self.data)
    }

    fn panel(&self) -> (&str, usize, &str) {
        (&self.workload, self.threads, &self.unit)
    }

    fn colour(&self) -> &'static str {
        match &self.engine {
            ours if is_ours(ours) => OURS,
            floor if floor.starts_with("floor") => FLOORS,
            _ => PEERS,
        }
    }
}

fn figures(lines: &str) -> Result<Vec<PlottedFigure>> {
    let mut figures = Vec::new();
    for (at, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let figure: PlottedFigure = serde_json::from_str(line).map_err(|error| {
            format!("line {} is no figure of a bench (`sapwood-bench ... --json`): {error}", at + 1)
        })?;
        if figure.unit != "ns" {
            figures.push(figure);
        }
    }
    Ok(figures)
}

fn together<'a>(
    figures: impl IntoIterator<Item = &'a PlottedFigure>,
    key: impl Fn(&'a PlottedFigure) -> (&'a str, usize, &'a str),
) -> Vec<Vec<&'a PlottedFigure>> {
    let mut groups: Vec<Vec<&PlottedFigure>> = Vec::new();
    for figure in figures {
        match groups.iter_mut().find(|group| key(group[0]) == key(figure)) {
            Some(group) => group.push(figure),
            None => groups.push(vec![figure]),
        }
    }
    groups
}

fn draw(figures: &[PlottedFigure], title: &str, command: Option<&str>) -> Result<String> {
    if figures.is_empty() {
        bail!("there are no figures to draw");
    }
    let mut page = Page::default();
    page.text(title, (MARGIN, 24), 20, INK, "start");
    let mut top = TITLE_HEIGHT;
    for line in head(figures, command) {
        page.text(&line, (MARGIN, top + 8), 13, FAINT_INK, "start");
        top += HEAD_LINE;
    }
    top += 8;
    for group in together(figures, PlottedFigure::group) {
        let (bench, entries, data) = group[0].group();
        let head = format!("{bench}: {} entries, {data}", with_commas(entries));
        page.text(&head, (MARGIN, top + 14), 16, INK, "start");
        top += GROUP_HEAD;
        for row in together(group, PlottedFigure::panel).chunks(COLUMNS) {
            for (column, panel) in row.iter().enumerate() {
                page.panel(panel, MARGIN + column as i32 * COLUMN, top);
            }
            let bars = row.iter().map(Vec::len).max().unwrap_or(0);
            top += PANEL_HEAD + LINE * bars as i32 + PANEL_FOOT;
        }
    }
    Ok(page.end(top + MARGIN))
}

/// The lines below the title: the machine, what bars and lines are, and the command.
fn head(figures: &[PlottedFigure], command: Option<&str>) -> Vec<String> {
    let mut lines: Vec<String> = figures.iter().filter_map(|it| it.machine.clone()).collect();
    lines.sort_unstable();
    lines.dedup();
    let runs = figures.iter().map(|figure| figure.runs).max().unwrap_or(1);
    lines.push(format!("Bars are medians of up to {runs} runs, lines their least and greatest."));
    let mut last = String::new();
    for word in command.unwrap_or_default().split(' ') {
        if last.len() + word.len() > LETTERS_MAX {
            lines.push(std::mem::take(&mut last));
        }
        last.push_str(word);
        last.push(' ');
    }
    lines.push(last);
    lines.retain(|line| !line.trim().is_empty());
    lines
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn panel(&mut self, figures: &[&PlottedFigure], left: i32, top: i32) {
        let of = figures[0];
        let threads = if of.threads == 1 { "thread" } else { "threads" };
        let is_rate = of.unit.ends_with("/s") && !of.unit.contains("bytes");
        let better = if is_rate { "" } else { ", less is better" };
        let head = format!("{}, {} {threads}, {}{better}", of.workload, of.threads, of.unit);
        self.text(&head, (left, top + 8), 13, INK, "start");
        let greatest = figures.iter().map(|figure| figure.max).fold(f64::MIN_POSITIVE, f64::max);
        let axis = left + NAMES;
        let at = |figure: f64| axis + (figure / greatest * f64::from(BARS)).round() as i32;
        for (place, figure) in figures.iter().enumerate() {
            let y = top + PANEL_HEAD + LINE * place as i32 + BAR / 2;
            self.text(&figure.engine, (axis - 6, y), 12, INK, "end");
            self.rectangle((axis, y - BAR / 2), (at(figure.median) - axis, BAR), figure.colour());
            if figure.min < figure.max {
                let (from, to) = (at(figure.min), at(figure.max));
                self.line((from, y), (to, y));
                [from, to].iter().for_each(|&x| self.line((x, y - 3), (x, y + 3)));
            }
            self.text(&short(figure.median), (axis + BARS + 6, y), 12, INK, "start");
        }
        let bottom = top + PANEL_HEAD + LINE * figures.len() as i32;
        self.line((axis, top + PANEL_HEAD - 4), (axis, bottom));
    }

    fn text(&mut self, text: &str, (x, y): (i32, i32), size: i32, colour: &str, anchor: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        // Letters stand about the middle of their line.
        let baseline = y + size * 7 / 20;
        self.0 += &format!(
            "<text x=\"{x}\" y=\"{baseline}\" font-size=\"{size}\" fill=\"{colour}\" \
             text-anchor=\"{anchor}\">{text}</text>\n"
        );
    }

    fn rectangle(&mut self, (x, y): (i32, i32), (width, height): (i32, i32), colour: &str) {
        self.0 += &format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\"/>\n"
        );
    }

    fn line(&mut self, (x, y): (i32, i32), (to_x, to_y): (i32, i32)) {
        self.0 += &format!(
            "<line x1=\"{x}\" y1=\"{y}\" x2=\"{to_x}\" y2=\"{to_y}\" stroke=\"{INK}\"/>\n"
        );
    }

    fn end(self, height: i32) -> String {
        let mut paper = Page(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\">\n"
        ));
        paper.rectangle((0, 0), (WIDTH, height), PAPER);
        paper.0 + &self.0 + "</svg>\n"
    }
}

fn short(number: f64) -> String {
    let (scale, unit) = match number {
        n if n >= 999.5e6 => (1e9, " G"),
        n if n >= 999.5e3 => (1e6, " M"),
        n if n >= 9_999.5 => (1e3, " K"),
        _ => (1.0, ""),
    };
    let scaled = number / scale;
    let digits = match scaled {
        n if n < 9.995 => 2,
        n if n < 99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.digits$}{unit}")
}

fn with_commas(number: usize) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}

pub(crate) fn create(path: &Path) -> Result {
    if !path.extension().is_some_and(|it| it.eq_ignore_ascii_case("svg")) {
        bail!("a plot is an SVG: name a file that ends in .svg, not {}", path.display());
    }
    write(path, "")
}

fn write(path: &Path, svg: &str) -> Result {
    let written = std::fs::write(path, svg);
    Ok(written.map_err(|error| format!("cannot write the plot {}: {error}", path.display()))?)
}

pub(crate) fn draw_lines(path: &Path, lines: &str) -> Result {
    write(path, &draw(&figures(lines)?, TITLE, Some(&command()))?)
}

/// Flags of `sapwood-bench plot`.
#[derive(Debug, Clone, clap::Args)]
pub struct PlotArgs {
    /// Figures of one bench or of several, as `sapwood-bench ... --json` prints them
    #[arg(required = true, value_name = "FILES")]
    figures: Vec<PathBuf>,

    /// The plot
    #[arg(long, value_name = "FILE.svg")]
    to: PathBuf,

    /// Its title
    #[arg(long, default_value = TITLE)]
    title: String,

    /// Workloads to draw, by their names [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    workloads: Vec<String>,

    /// Engines to draw, by their names [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    engines: Vec<String>,

    /// Figures of so many threads [default: all]
    #[arg(long, value_delimiter = ',', value_name = "COUNTS")]
    threads: Vec<usize>,
}

/// Draws figures that were saved.
pub fn run(args: &PlotArgs) -> Result {
    let mut all = Vec::new();
    for path in &args.figures {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        all.extend(figures(&text).map_err(|error| format!("{}: {error}", path.display()))?);
    }
    fn has<T: PartialEq>(wanted: &[T], it: &T) -> bool {
        wanted.is_empty() || wanted.contains(it)
    }
    all.retain(|figure| {
        has(&args.workloads, &figure.workload)
            && has(&args.engines, &figure.engine)
            && has(&args.threads, &figure.threads)
    });
    let svg = draw(&all, &args.title, None)?;
    create(&args.to)?;
    write(&args.to, &svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (number, text) in [
            (0.0, "0.00"),
            (14.04, "14.0"),
            (1_142.0, "1142"),
            (23_456.0, "23.5 K"),
            (999_900.0, "1.00 M"),
            (1_104_000.0, "1.10 M"),
            (2.5e9, "2.50 G"),
        ] {
            assert_eq!(short(number), text);
        }
        assert_eq!((with_commas(7), with_commas(1_234_567)), ("7".into(), "1,234,567".into()));
    }
}
