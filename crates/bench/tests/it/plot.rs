//! Plots of figures.

use std::path::Path;

use clap::Parser;
use roxmltree::Document;
use sapwood_bench::Result;

use crate::{Lines, check_texts};

#[derive(Parser)]
struct Plot {
    #[command(flatten)]
    plot: sapwood_bench::plot::PlotArgs,
}

fn aggregate(words: &str, to: &Path) -> Result<String> {
    crate::run(&format!("aggregate {words} --plot {}", to.display()))
}

/// Rectangles of the plot, without its paper, and its texts.
fn bars_and_texts(svg: &str) -> (usize, Vec<String>) {
    let document = Document::parse(svg).expect("it is well-formed");
    let named = |name| {
        document
            .descendants()
            .filter(move |node| node.has_tag_name(("http://www.w3.org/2000/svg", name)))
    };
    let texts = named("text").filter_map(|node| node.text()).map(|text| text.trim().to_owned());
    (named("rect").count() - 1, texts.collect())
}

fn plot(files: &[&Path], to: &Path) -> Result<String> {
    let mut words = vec![Path::new("plot"), Path::new("--to"), to];
    words.extend(files);
    sapwood_bench::plot::run(&Plot::parse_from(words).plot)?;
    Ok(std::fs::read_to_string(to)?)
}

#[test]
fn a_bench_draws_a_bar_for_each_figure() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let (during, after) = (folder.path().join("during.svg"), folder.path().join("after.svg"));
    let flags = "--smoke --part sums --objects 2000 --threads 1 --json";
    let printed = aggregate(flags, &during).expect("it runs");
    let lines = folder.path().join("lines.jsonl");
    std::fs::write(&lines, &printed).expect("a file for the test");

    let figures = Lines::of(&printed).0;
    for svg in [
        std::fs::read_to_string(&during).expect("it is drawn"),
        plot(&[&lines], &after).expect("it is drawn"),
    ] {
        let (bars, texts) = bars_and_texts(&svg);
        assert_eq!(bars, figures.len(), "{texts:?}");
        let all = texts.join("\n");
        let machine = figures[0]["machine"].as_str().expect("a text");
        let group = "\naggregate: 2,000 entries, 8+8 B\n";
        let panel = "\neverything, 1 thread, objects/s\n";
        check_texts(&all, &["Sapwood beside its peers\n", group, panel, machine], &[]);
        assert!(figures.iter().all(|line| texts.iter().any(|text| text == &line["engine"])));
    }
}

#[test]
fn benches_of_several_files_stand_on_one_page() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let line = |bench: &str, engine: &str, unit: &str| {
        serde_json::json!({
            "bench": bench, "workload": "put <&>", "threads": 2, "entries": 5, "engine": engine, "unit": unit,
            "median": 2.0, "min": 1.0, "max": 3.0, "runs": 5, "data": "8+8 B",
        })
    };
    let [ordered, hash] = ["ordered", "hash"].map(|bench| {
        let path = folder.path().join(bench);
        let lines = [
            line(bench, "sapwood", "ops/s"),
            line(bench, "BTreeMap<&>", "ops/s"),
            line(bench, "sapwood", "ns"),
        ];
        let lines: String = lines.iter().map(|line| format!("{line}\n\n")).collect();
        std::fs::write(&path, lines).expect("a file for the test");
        path
    });
    let svg = plot(&[&ordered, &hash], &folder.path().join("both.svg")).expect("it is drawn");
    let (bars, texts) = bars_and_texts(&svg);
    // Latencies are left out.
    assert_eq!(bars, 4);
    let panels = ["put <&>, 2 threads, ops/s\n", "\nBTreeMap<&>\n"];
    let groups = ["\nordered: 5 entries, 8+8 B\n", "\nhash: 5 entries, 8+8 B\n"];
    check_texts(&texts.join("\n"), &[panels, groups].concat(), &[]);
}

#[test]
fn what_cannot_be_drawn_is_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    for (path, message) in
        [("none/figures.svg", "cannot write the plot "), ("figures.png", "ends in .svg")]
    {
        let path = folder.path().join(path);
        let error = aggregate("--full", &path).expect_err("it is refused");
        assert!(error.to_string().contains(message), "{error}");
    }
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").expect("a file for the test");
    let drawn = folder.path().join("drawn.svg");
    let error = plot(&[&empty], &drawn).expect_err("it is refused");
    assert!(error.to_string().contains("no figures"), "{error}");
    std::fs::write(&empty, "{\"bench\":\"hash\"}\n").expect("a file for the test");
    let error = plot(&[&empty], &drawn).expect_err("it is refused").to_string();
    check_texts(&error, &["line 1 is no figure of a bench", "workload"], &[]);
}
