//! Rows a second of the flights of 2013, as CSV: `cargo test --release -p sapwood-cli --bin sapwood -- --ignored
//! --nocapture flights_a_second`.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use sapwood::sql::{Request, Source};

use sapwood::schema::Data;

use super::{Files, open};
use crate::rows::frames::FrameOptions;
use crate::terminal::stderr;

#[test]
#[ignore = "a measurement"]
fn flights_a_second() {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/flights-2013.csv.zst");
    let files = Files::new();
    let bytes = zstd::decode_all(std::fs::File::open(&packed).expect("the flights")).expect("text");
    let plain = files.write("flights.csv", bytes);
    for path in [&plain, &packed] {
        for threads in [1, 2] {
            let mut best = f64::MAX;
            let mut opening = f64::MAX;
            for _ in 0..7 {
                let begin = Instant::now();
                let source = open(path, &FrameOptions::default()).expect("a source");
                opening = opening.min(begin.elapsed().as_secs_f64());
                assert_eq!(
                    means(&source, threads).values().map(|(rows, _)| rows).sum::<u64>(),
                    336_776
                );
                best = best.min(begin.elapsed().as_secs_f64());
            }
            stderr::line(format_args!(
                "{} by {threads} threads: {:.1} ms, {:.1} of them to open it; {:.1} M rows/s",
                path.display(),
                best * 1e3,
                opening * 1e3,
                336_776.0 / (best - opening) / 1e6
            ));
        }
    }
}

/// `select carrier, count(*), avg(dep_delay) group by carrier`, by hand.
fn means(source: &impl Source, threads: usize) -> HashMap<Vec<u8>, (u64, f64)> {
    let place = |name: &str| source.columns().iter().position(|column| column.name == name);
    let columns = ["carrier", "dep_delay"].map(|name| place(name).expect("a column")).to_vec();
    let scan = source.scan(&Request { columns, ..Request::default() }).expect("a scan");
    let all: Mutex<HashMap<Vec<u8>, (u64, f64)>> = Mutex::default();
    let read = || {
        let mut own: HashMap<Vec<u8>, (u64, f64)> = HashMap::new();
        let read = scan.work(&mut |_, batch| {
            let [carriers, delays] = &batch.columns[..] else { unreachable!("two were wanted") };
            let (Data::Bytes(carriers), Data::Int(delays)) = (&carriers.data, &delays.data) else {
                unreachable!("text and whole numbers")
            };
            for (carrier, delay) in carriers.iter().zip(delays) {
                match own.get_mut(carrier) {
                    Some((rows, sum)) => (*rows, *sum) = (*rows + 1, *sum + *delay as f64),
                    None => drop(own.insert(carrier.to_vec(), (1, *delay as f64))),
                }
            }
            ControlFlow::Continue(())
        });
        read.expect("rows");
        let mut all = all.lock().expect("no panic");
        for (carrier, (rows, sum)) in own {
            let found = all.entry(carrier).or_default();
            *found = (found.0 + rows, found.1 + sum);
        }
    };
    thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(read)));
        read();
    });
    all.into_inner().expect("no panic")
}
