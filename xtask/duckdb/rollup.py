#!/usr/bin/env python3
"""Rolls events up with `sapwood ingest`, and asks `sapwood query` and DuckDB the same questions about them.

DuckDB reads the events as they came, and the Parquet files that `sapwood export` makes of the facts. `cargo xtask
duckdb` runs this behind `compare.py`. Figures must be equal: counts and whole numbers exactly, others to 1e-9 of their
size; quantiles to 1 % of their value, distinct counts beyond 256 to 8 %.
"""

import argparse
import datetime
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import duckdb

FLOAT_SHARE = 1e-9
QUANTILE_SHARE = 0.0101
# The standard error is 1.6 % of more values than are counted one by one: beyond five of it is a bug.
DISTINCT_EXACT_MAX = 256
DISTINCT_SHARE = 0.08
BEGIN = datetime.datetime(2015, 9, 12)
INTERVAL = "2015-09-12/P3D"

SCHEMA = {
    "timestampSpec": {"column": "time"},
    "dimensionsSpec": {"dimensions": ["page", "tags", {"type": "long", "name": "size"}]},
    "metricsSpec": [
        {"type": "count", "name": "rows"},
        {"type": "longSum", "name": "added", "fieldName": "n"},
        {"type": "doubleSum", "name": "paid", "fieldName": "price"},
        {"type": "longMin", "name": "least", "fieldName": "n"},
        {"type": "doubleMax", "name": "most", "fieldName": "price"},
        {"type": "longFirst", "name": "first", "fieldName": "n"},
        {"type": "longLast", "name": "last", "fieldName": "n"},
        {"type": "distinct", "name": "users", "fieldName": "user"},
        {"type": "quantiles", "name": "prices", "fieldName": "price"},
        {"type": "variance", "name": "spread", "fieldName": "price"},
    ],
    "granularitySpec": {"queryGranularity": "hour", "segmentGranularity": "day"},
}

# Figures: an aggregation, its SQL over the events, that over the facts of Parquet (none where states merge), and how
# they are compared.
FIGURES = [
    ({"type": "longSum", "fieldName": "rows"}, "count(*)", "sum(rows)", "exact"),
    ({"type": "longSum", "fieldName": "added"}, "sum(n)", "sum(added)", "exact"),
    ({"type": "doubleSum", "fieldName": "paid"}, "fsum(price)", "fsum(paid)", "close"),
    ({"type": "longMin", "fieldName": "least"}, "min(n)", "min(least)", "exact"),
    ({"type": "doubleMax", "fieldName": "most"}, "max(price)", "max(most)", "exact"),
    ({"type": "longFirst", "fieldName": "first"}, "arg_min(n, time) filter (n is not null)",
     "arg_min(first, first_time) filter (first is not null)", "exact"),
    ({"type": "longLast", "fieldName": "last"}, "arg_max(n, time) filter (n is not null)",
     "arg_max(last, last_time) filter (last is not null)", "exact"),
    ({"type": "distinct", "fieldName": "users"}, "count(distinct \"user\")", None, "distinct"),
    ({"type": "quantile", "fieldName": "prices", "fraction": 0.9},
     "[" + ", ".join(
         "list_sort(list(price) filter (where price is not null))"
         f"[1 + cast({edge}(0.9 * (count(price) - 1)) as bigint)]" for edge in ("floor", "ceil")) + "]",
     None, "quantile"),
    ({"type": "variance", "fieldName": "spread"}, "var_pop(price)",
     # Of parts: the squared distances within each, and those of their means.
     "case when sum(spread_count) > 0 then (sum(spread_m2) + sum(spread_count * spread_mean * spread_mean) "
     "- sum(spread_count * spread_mean) ** 2 / sum(spread_count)) / sum(spread_count) end", "spread"),
]

# Filters: as Druid has them, and in SQL, which both tables understand.
FILTERS = [
    (None, "true"),
    ({"type": "selector", "dimension": "page", "value": "a"}, "page = 'a'"),
    ({"type": "null", "column": "page"}, "page is null"),
    ({"type": "not", "field": {"type": "in", "dimension": "page", "values": ["a", "Zürich"]}},
     "page not in ('a', 'Zürich')"),
    ({"type": "bound", "dimension": "size", "lower": "2", "upper": "5", "ordering": "numeric"},
     "size between 2 and 5"),
    ({"type": "like", "dimension": "page", "pattern": "%a%"}, "page like '%a%'"),
    ({"type": "selector", "dimension": "tags", "value": "x"}, "list_contains(tags, 'x')"),
    ({"type": "and", "fields": [
        {"type": "or", "fields": [{"type": "selector", "dimension": "size", "value": "1"},
                                  {"type": "selector", "dimension": "size", "value": "7"}]},
        {"type": "regex", "dimension": "page", "pattern": "^[a-c]"}]},
     "size in (1, 7) and regexp_matches(page, '^[a-c]')"),
]

# Dimensions: none, or one.
GROUPS = [None, "page", "size"]
GRANULARITIES = {"all": None, "hour": "hour", "day": "day"}


def events(path, rng, count):
    """JSON lines: texts with nulls and several values, numbers with nulls, each time once."""
    pages = [None, "", "a", "Zürich", "東京", "naïve, \"quoted\"", "b c", "aa"]
    seconds = rng.sample(range(3 * 86400), count)
    with open(path, "w", encoding="utf-8") as file:
        for second in seconds:
            row = {"time": (BEGIN + datetime.timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ")}
            maybe = lambda name, share, value: row.update({name: value}) if rng.random() < share else None
            maybe("page", 0.9, rng.choice(pages))
            maybe("tags", 0.7, rng.choice([["x"], ["x", "y"], ["y", "z", "x"], ["z"]]))
            maybe("size", 0.9, rng.randrange(9))
            maybe("n", 0.8, rng.randrange(-1000, 1000))
            maybe("price", 0.8, rng.randrange(1, 99999) / 100)
            maybe("user", 0.95, f"user {rng.randrange(3000)}")
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


class Compared:
    """How much was compared, and what differs."""

    def __init__(self):
        self.figures, self.wrong = 0, 0

    def row(self, what, kinds, found, right):
        for kind, one, other in zip(kinds, found, right, strict=True):
            self.figures += 1
            if not same(kind, one, other):
                self.wrong += 1
                if self.wrong <= 20:
                    print(f"DIFFERS: {what}: {one}, and DuckDB {other} ({kind})", flush=True)

    def groups(self, what, kinds, found, right):
        if found.keys() != right.keys():
            self.wrong += 1
            print(f"DIFFERS: {what}: groups {sorted(map(str, found.keys() ^ right.keys()))[:5]}", flush=True)
        for key in found.keys() & right.keys():
            self.row(f"{what}, group {key}", kinds, found[key], right[key])


def same(kind, found, right):
    if kind == "quantile":
        # Of the values at the ranks around it, or what lies between them.
        below, above = right
        if found is None or below is None:
            return found is below
        return below * (1 - QUANTILE_SHARE) <= found <= above * (1 + QUANTILE_SHARE)
    if found is None or right is None:
        return found is right
    if kind == "exact":
        return found == right
    if kind == "distinct" and right > DISTINCT_EXACT_MAX:
        return math.isclose(found, right, rel_tol=DISTINCT_SHARE)
    return math.isclose(found, right, rel_tol=1e-6 if kind == "spread" else FLOAT_SHARE, abs_tol=1e-6)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def ask(program, directory, condition, group, granularity):
    query = {
        "queryType": "groupBy",
        "dimensions": [group] if group else [],
        "granularity": granularity,
        "intervals": INTERVAL,
        "aggregations": [{**figure, "name": f"f{at}"} for at, (figure, *_) in enumerate(FIGURES)],
    }
    if condition:
        query["filter"] = condition
    rows = json.loads(run(program, "query", json.dumps(query), directory, "--table", "edits", "--json", "-q"))
    key = lambda row: (row["timestamp"] if granularity != "all" else None, row["event"].get(group) if group else None)
    return {key(row): [row["event"][f"f{at}"] for at in range(len(FIGURES))] for row in rows}


def ask_duckdb(con, table, time, figures, where, group, granularity):
    unit = GRANULARITIES[granularity]
    bucket = f"strftime(date_trunc('{unit}', {time}), '%Y-%m-%dT%H:%M:%S.000Z')" if unit else "null"
    sql = f"select {bucket}, {group or 'null'}, {', '.join(figures)} from {table} where {where} group by 1, 2"
    # Without rows there is no group.
    return {(row[0], row[1]): list(row[2:]) for row in con.execute(sql).fetchall()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sapwood", required=True, help="the program")
    parser.add_argument("--smoke", action="store_true", help="few events")
    parser.add_argument("--seed", type=int, default=1, help="names the events")
    args, _ = parser.parse_known_args()
    compared = Compared()
    with tempfile.TemporaryDirectory(prefix="sapwood-duckdb-") as folder:
        path = lambda name: os.path.join(folder, name)
        events(path("edits.jsonl"), random.Random(args.seed), 5_000 if args.smoke else 100_000)
        ingest = [args.sapwood, "ingest", path("edits.jsonl"), "--dir", path("dir"), "--table", "edits", "-q"]
        run(*ingest, "--schema", json.dumps(SCHEMA), "--seal")
        run(args.sapwood, "export", path("dir"), "edits", "--to", path("facts"), "-q")
        con = duckdb.connect()
        con.execute("set timezone = 'UTC'")
        columns = ("{time: 'timestamp', page: 'varchar', tags: 'varchar[]', size: 'bigint', n: 'bigint', "
                   "price: 'double', \"user\": 'varchar'}")
        con.execute(f"create table events as select * from read_json('{path('edits.jsonl')}', columns = {columns})")
        con.execute(f"create table facts as select * from read_parquet('{path('facts')}/*.parquet')")
        con.execute("alter table facts alter column __time type timestamp using __time at time zone 'UTC'")
        in_facts = [at for at, figure in enumerate(FIGURES) if figure[2]]
        kinds = [figure[3] for figure in FIGURES]
        for condition, where in FILTERS:
            for group in GROUPS:
                for granularity in GRANULARITIES:
                    what = f"{where}, by {group}, {granularity}"
                    found = ask(args.sapwood, path("dir"), condition, group, granularity)
                    right = ask_duckdb(con, "events", "time", [figure[1] for figure in FIGURES], where, group, granularity)
                    compared.groups(what, kinds, found, right)
                    parquet = ask_duckdb(
                        con, "facts", "__time", [FIGURES[at][2] for at in in_facts], where, group, granularity)
                    right = {key: [row[at] for at in in_facts] for key, row in right.items()}
                    compared.groups(f"Parquet: {what}", [kinds[at] for at in in_facts], parquet, right)
    print(f"duckdb {duckdb.__version__}: roll-up, {compared.figures} figures, {compared.wrong} differences")
    if compared.figures == 0:
        print("error: nothing was compared", file=sys.stderr)
    sys.exit(1 if compared.wrong or compared.figures == 0 else 0)


if __name__ == "__main__":
    main()
