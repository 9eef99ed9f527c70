//! Roll-ups of a log that several threads do again, beside plain code.

use std::collections::BTreeMap;
use std::num::NonZero;

use fastrand::Rng;
use sapwood_disk::SimDisk;

use crate::rollup::{
    Aggregation, Column, Dimension, Granularity, Limits, Metric, Query, RowBatch, Schema,
};
use crate::{Db, DbOptions, Durability, Result, RollupTable, RollupTableOptions};

/// Seconds and pages, with how many rows they have, and their sum.
type Groups = BTreeMap<(i64, String), (i64, i64)>;

fn second() -> Granularity {
    Granularity::parse("second").expect("known")
}

fn groups(table: &RollupTable) -> Result<Groups> {
    let query = Query::group_by(["page"])
        .granularity(second())
        .aggregation(Aggregation::long_sum("rows", "rows"))
        .aggregation(Aggregation::long_sum("added", "added"));
    let long = |value: &crate::rollup::Value<'_>| value.to_long().ok().flatten().expect("a number");
    let answer = table.query(&query)?;
    let groups = answer.rows.iter().map(|row| {
        let page = row[1].to_text().expect("no null").into_owned();
        ((long(&row[0]), page), (long(&row[2]), long(&row[3])))
    });
    Ok(groups.collect())
}

/// Rows, which go into the groups too.
fn batch(rng: &mut Rng, groups: &mut Groups) -> RowBatch {
    let rows = [1, 2, 200][rng.usize(..3)];
    let rows: Vec<(i64, String, i64)> = (0..rows)
        .map(|_| (rng.i64(0..30_000), rng.u8(..9).to_string(), rng.i64(-1_000..1_000)))
        .collect();
    for (time, page, added) in &rows {
        let group = groups.entry((time / 1_000 * 1_000, page.clone())).or_default();
        *group = (group.0 + 1, group.1 + added);
    }
    RowBatch::new(rows.len())
        .column("time", Column::longs(rows.iter().map(|row| row.0)))
        .and_then(|batch| batch.column("page", Column::texts(rows.iter().map(|row| &row.1))))
        .and_then(|batch| batch.column("added", Column::longs(rows.iter().map(|row| row.2))))
        .expect("columns of one length")
}

#[test]
fn batches_come_again_behind_those_that_are_sealed() -> Result<()> {
    // A seal for every few batches.
    let mut limits = Limits::default();
    limits.facts_max = Some(250);
    let schema = Schema::new("time")
        .dimension(Dimension::text("page"))
        .metric(Metric::count("rows"))
        .metric(Metric::long_sum("added", "added"))
        .query_granularity(second())
        .limits(limits);
    let mut rng = Rng::with_seed(9);
    let mut disk = SimDisk::new();
    let (mut expected, mut offsets) = (Groups::new(), BTreeMap::new());
    let mut live = 0;
    for (round, threads) in [3, 1, 2, 8, 3, 5].into_iter().enumerate() {
        let mut options = DbOptions::default().durability(Durability::Sync);
        options.recovery_threads = NonZero::new(threads);
        let db = Db::open_simulated(&disk, options)?;
        let names = ["edits", "views"];
        let open =
            |name| db.open_or_create_rollup_table(name, RollupTableOptions::new(schema.clone()));
        let tables = [open(names[0])?, open(names[1])?];
        live += tables.iter().map(|table| table.stats().facts).sum::<u64>();
        for table in &tables {
            assert_eq!(groups(table)?, expected, "round {round}");
            assert_eq!(table.offsets(), offsets);
        }
        for _ in 0..50 {
            let batch = batch(&mut rng, &mut expected);
            let source = rng.u8(..3).to_string();
            let offset = offsets.entry(source.clone()).or_insert(0);
            *offset += 1;
            for table in &tables {
                table.ingest_from(&batch, &[(source.as_str(), *offset)])?;
            }
        }
        assert!(tables.iter().all(|table| table.stats().segments > 0));
        disk = disk.crash(round as u64);
        let reader = Db::open_simulated_read_only(&disk)?;
        assert_eq!(groups(&reader.rollup_table("edits")?)?, expected);
    }
    assert!(live > 500, "{live} facts came again from the log");
    Ok(())
}
