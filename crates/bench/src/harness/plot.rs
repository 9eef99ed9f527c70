//! Figures drawn: a page of panels, one for each workload, each with a bar for every engine.
//!
//! *Useful for* seeing ours beside peers at a glance, with the spread of the runs.
//! *Not useful for* latencies, whose tails need an axis of their own: they are left out.
//!
//! A panel has its own scale, which begins at zero: rates of a workload on so many threads compare,
//! those of two panels do not.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::Result;
use crate::harness::{command, is_ours};

const TITLE: &str = "Sapwood beside its peers";

/// Pixels of the page's width, and of the margin around it.
const WIDTH: i32 = 1080;
const MARGIN: i32 = 20;
const COLUMNS: i32 = 3;
const COLUMN: i32 = (WIDTH - 2 * MARGIN) / COLUMNS;
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

/// A figure as benches write it with `--json`.
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

    fn is_beside(&self, other: &PlottedFigure) -> bool {
        self.group() == other.group()
            && (&self.workload, self.threads, &self.unit)
                == (&other.workload, other.threads, &other.unit)
    }

    fn colour(&self) -> &'static str {
        match &self.engine {
            ours if is_ours(ours) => OURS,
            floor if floor.starts_with("floor") => FLOORS,
            _ => PEERS,
        }
    }
}

/// The figures of JSON lines, without latencies.
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

/// Figures that stand together, in the order in which they came.
fn together<'a>(
    figures: impl IntoIterator<Item = &'a PlottedFigure>,
    is_same: impl Fn(&PlottedFigure, &PlottedFigure) -> bool,
) -> Vec<Vec<&'a PlottedFigure>> {
    let mut groups: Vec<Vec<&PlottedFigure>> = Vec::new();
    for figure in figures {
        match groups.iter_mut().find(|group| is_same(group[0], figure)) {
            Some(group) => group.push(figure),
            None => groups.push(vec![figure]),
        }
    }
    groups
}

/// Draws figures as an SVG.
fn draw(figures: &[PlottedFigure], title: &str, command: Option<&str>) -> Result<String> {
    if figures.is_empty() {
        return Err("there are no figures to draw".into());
    }
    let groups: Vec<Vec<Vec<&PlottedFigure>>> = together(figures, |a, b| a.group() == b.group())
        .into_iter()
        .map(|group| together(group, PlottedFigure::is_beside))
        .collect();
    let rows_of = |group: &[Vec<&PlottedFigure>]| -> i32 {
        group.chunks(COLUMNS as usize).map(height_of_row).sum::<i32>() + GROUP_HEAD
    };
    let head = head(figures, command);
    let page_head = TITLE_HEIGHT + HEAD_LINE * head.len() as i32 + 8;
    let height = page_head + groups.iter().map(|group| rows_of(group)).sum::<i32>() + MARGIN;

    let mut page = Page::new(height);
    page.text(title, (MARGIN, 24), 20, INK, Anchor::Start);
    for (at, line) in head.iter().enumerate() {
        let middle = TITLE_HEIGHT + HEAD_LINE * at as i32 + 8;
        page.text(line, (MARGIN, middle), 13, FAINT_INK, Anchor::Start);
    }
    let mut top = page_head;
    for group in &groups {
        let (bench, entries, data) = group[0][0].group();
        let head = format!("{bench}: {} entries, {data}", with_commas(entries));
        page.text(&head, (MARGIN, top + 14), 16, INK, Anchor::Start);
        top += GROUP_HEAD;
        for row in group.chunks(COLUMNS as usize) {
            for (column, panel) in row.iter().enumerate() {
                page.panel(panel, MARGIN + column as i32 * COLUMN, top);
            }
            top += height_of_row(row);
        }
    }
    Ok(page.svg + "</svg>\n")
}

/// The lines below the title: the machine, what bars and lines are, and the command.
fn head(figures: &[PlottedFigure], command: Option<&str>) -> Vec<String> {
    let mut machines: Vec<&str> =
        figures.iter().filter_map(|figure| figure.machine.as_deref()).collect();
    machines.sort_unstable();
    machines.dedup();
    let runs = figures.iter().map(|figure| figure.runs).max().unwrap_or(1);
    let bars = format!("Bars are medians of up to {runs} runs, lines their least and greatest.");
    let mut lines: Vec<String> = machines.into_iter().map(str::to_owned).collect();
    lines.push(bars);
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

fn height_of_row(panels: &[Vec<&PlottedFigure>]) -> i32 {
    let bars = panels.iter().map(Vec::len).max().unwrap_or(0);
    PANEL_HEAD + LINE * bars as i32 + PANEL_FOOT
}

/// The end of a text that stands at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    Start,
    End,
}

/// An SVG under construction.
struct Page {
    svg: String,
}

impl Page {
    /// Blank paper of a height.
    fn new(height: i32) -> Page {
        let head = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\">\n"
        );
        let mut page = Page { svg: head };
        page.rectangle((0, 0), (WIDTH, height), PAPER);
        page
    }

    /// The figures of one workload on so many threads.
    fn panel(&mut self, figures: &[&PlottedFigure], left: i32, top: i32) {
        let of = figures[0];
        let threads = if of.threads == 1 { "thread" } else { "threads" };
        let is_rate = of.unit.ends_with("/s") && !of.unit.contains("bytes");
        let better = if is_rate { "" } else { ", less is better" };
        let head = format!("{}, {} {threads}, {}{better}", of.workload, of.threads, of.unit);
        self.text(&head, (left, top + 8), 13, INK, Anchor::Start);
        let greatest = figures.iter().map(|figure| figure.max).fold(0.0, f64::max);
        let axis = left + NAMES;
        let at = |figure: f64| {
            let share = if greatest > 0.0 { figure / greatest } else { 0.0 };
            axis + (share * f64::from(BARS)).round() as i32
        };
        for (place, figure) in figures.iter().enumerate() {
            let middle = top + PANEL_HEAD + LINE * place as i32 + BAR / 2;
            self.text(&figure.engine, (axis - 6, middle), 12, INK, Anchor::End);
            let size = (at(figure.median) - axis, BAR);
            self.rectangle((axis, middle - BAR / 2), size, figure.colour());
            if figure.min < figure.max {
                let (from, to) = (at(figure.min), at(figure.max));
                self.line((from, middle), (to, middle));
                self.line((from, middle - 3), (from, middle + 3));
                self.line((to, middle - 3), (to, middle + 3));
            }
            let number = (axis + BARS + 6, middle);
            self.text(&short(figure.median), number, 12, INK, Anchor::Start);
        }
        let bottom = top + PANEL_HEAD + LINE * figures.len() as i32;
        self.line((axis, top + PANEL_HEAD - 4), (axis, bottom));
    }

    fn text(&mut self, text: &str, (x, y): (i32, i32), size: i32, colour: &str, anchor: Anchor) {
        let anchor = if anchor == Anchor::End { " text-anchor=\"end\"" } else { "" };
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        // Letters stand about the middle of their line.
        let baseline = y + size * 7 / 20;
        self.svg += &format!(
            "<text x=\"{x}\" y=\"{baseline}\" font-size=\"{size}\" fill=\"{colour}\"{anchor}>{text}</text>\n"
        );
    }

    fn rectangle(&mut self, (x, y): (i32, i32), (width, height): (i32, i32), colour: &str) {
        self.svg += &format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\"/>\n"
        );
    }

    fn line(&mut self, (x, y): (i32, i32), (to_x, to_y): (i32, i32)) {
        self.svg += &format!(
            "<line x1=\"{x}\" y1=\"{y}\" x2=\"{to_x}\" y2=\"{to_y}\" stroke=\"{INK}\"/>\n"
        );
    }
}

/// A number to three digits.
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
    let groups: Vec<&str> = groups.filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// The file of a plot, which is made before anything is measured.
#[derive(Debug)]
pub(crate) struct PlotFile(PathBuf);

impl PlotFile {
    /// Makes the file, empty for now.
    pub(crate) fn create(path: &Path) -> Result<PlotFile> {
        if !path.extension().is_some_and(|it| it.eq_ignore_ascii_case("svg")) {
            let path = path.display();
            return Err(
                format!("a plot is an SVG: name a file that ends in .svg, not {path}").into()
            );
        }
        match std::fs::File::create(path) {
            Ok(_) => Ok(PlotFile(path.to_owned())),
            Err(error) => Err(format!("cannot write the plot {}: {error}", path.display()).into()),
        }
    }

    /// Draws the figures of JSON lines.
    pub(crate) fn draw(&self, lines: &str) -> Result {
        self.write(&draw(&figures(lines)?, TITLE, Some(&command()))?)
    }

    fn write(&self, svg: &str) -> Result {
        std::fs::write(&self.0, svg)
            .map_err(|error| format!("cannot write the plot {}: {error}", self.0.display()).into())
    }
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

impl PlotArgs {
    fn wants(&self, figure: &PlottedFigure) -> bool {
        fn has<T: PartialEq>(wanted: &[T], it: &T) -> bool {
            wanted.is_empty() || wanted.contains(it)
        }
        has(&self.workloads, &figure.workload)
            && has(&self.engines, &figure.engine)
            && has(&self.threads, &figure.threads)
    }
}

/// Draws figures that were saved.
///
/// # Errors
///
/// A file cannot be read or written, or has no figures.
pub fn run(args: &PlotArgs) -> Result {
    let mut all = Vec::new();
    for path in &args.figures {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        all.extend(figures(&text).map_err(|error| format!("{}: {error}", path.display()))?);
    }
    all.retain(|figure| args.wants(figure));
    let svg = draw(&all, &args.title, None)?;
    PlotFile::create(&args.to)?.write(&svg)
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
