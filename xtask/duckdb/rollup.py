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


class Data:
    """Events, how they are rolled up, and what is asked of them."""

    def __init__(self, name, file, rows, time, schema, interval, figures, filters, groups, granularities):
        # `rows` and `time` are those of DuckDB.
        self.name, self.file, self.rows, self.time = name, file, rows, time
        self.schema, self.interval, self.figures = schema, interval, figures
        self.filters, self.groups, self.granularities = filters, groups, granularities


def quantile(column, share):
    """The values at the ranks around a share of the way from the first to the last."""
    ranks = ", ".join(f"list_sort(list({column}) filter (where {column} is not null))"
                      f"[1 + cast({edge}({share} * (count({column}) - 1)) as bigint)]" for edge in ("floor", "ceil"))
    return f"[{ranks}]"


# Figures are an aggregation, its SQL over the events, that over the facts of Parquet (none where states merge), and how
# they are compared; filters are what Druid has, and SQL that both tables understand; groups are one dimension, or none.

def made_up(folder, seed, count):
    file = os.path.join(folder, "edits.jsonl")
    events(file, random.Random(seed), count)
    columns = ("{time: 'timestamp', page: 'varchar', tags: 'varchar[]', size: 'bigint', n: 'bigint', "
               "price: 'double', \"user\": 'varchar'}")
    schema = {
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
    figures = [
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
        ({"type": "quantile", "fieldName": "prices", "fraction": 0.9}, quantile("price", 0.9), None, "quantile"),
        ({"type": "variance", "fieldName": "spread"}, "var_pop(price)",
         # Of parts: the squared distances within each, and those of their means.
         "case when sum(spread_count) > 0 then (sum(spread_m2) + sum(spread_count * spread_mean * spread_mean) "
         "- sum(spread_count * spread_mean) ** 2 / sum(spread_count)) / sum(spread_count) end", "spread"),
    ]
    filters = [
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
    rows = f"read_json('{file}', columns = {columns})"
    return Data("made up", file, rows, "time", schema, "2015-09-12/P3D", figures, filters, [None, "page", "size"],
                ["all", "hour", "day"])


def flights(file):
    schema = {
        "timestampSpec": {"column": "time_hour"},
        "dimensionsSpec": {"dimensions": ["carrier", "origin", "dest"]},
        "metricsSpec": [
            {"type": "count", "name": "flights"},
            {"type": "longSum", "name": "miles", "fieldName": "distance"},
            {"type": "longMin", "name": "least", "fieldName": "dep_delay"},
            {"type": "longMax", "name": "most", "fieldName": "arr_delay"},
            {"type": "doubleSum", "name": "delays", "fieldName": "arr_delay"},
            {"type": "distinct", "name": "planes", "fieldName": "tailnum"},
            {"type": "quantiles", "name": "air", "fieldName": "air_time"},
        ],
        "granularitySpec": {"queryGranularity": "hour", "segmentGranularity": "month"},
    }
    figures = [
        ({"type": "longSum", "fieldName": "flights"}, "count(*)", "sum(flights)", "exact"),
        ({"type": "longSum", "fieldName": "miles"}, "sum(distance)", "sum(miles)", "exact"),
        ({"type": "longMin", "fieldName": "least"}, "min(dep_delay)", "min(least)", "exact"),
        ({"type": "longMax", "fieldName": "most"}, "max(arr_delay)", "max(most)", "exact"),
        ({"type": "doubleSum", "fieldName": "delays"}, "cast(sum(arr_delay) as double)", "fsum(delays)", "close"),
        ({"type": "distinct", "fieldName": "planes"}, "count(distinct coalesce(tailnum, 'NA'))", None, "distinct"),
        ({"type": "quantile", "fieldName": "air", "fraction": 0.5}, quantile("air_time", 0.5), None, "quantile"),
    ]
    filters = [
        (None, "true"),
        ({"type": "selector", "dimension": "carrier", "value": "UA"}, "carrier = 'UA'"),
        ({"type": "in", "dimension": "dest", "values": ["MIA", "LAX", "nowhere"]}, "dest in ('MIA', 'LAX', 'nowhere')"),
        ({"type": "not", "field": {"type": "like", "dimension": "dest", "pattern": "S%"}}, "dest not like 'S%'"),
        ({"type": "bound", "dimension": "origin", "lower": "F", "ordering": "lexicographic"}, "origin >= 'F'"),
    ]
    # As a text, NA is one here.
    rows = f"read_csv('{file}', nullstr = 'NA')"
    return Data("flights", file, rows, "time_hour", schema, "2013-01-01/P2Y", figures, filters,
                [None, "carrier", "origin"], ["all", "hour", "day", "month"])


def wikiticker(file):
    schema = {
        "timestampSpec": {"column": "time"},
        "dimensionsSpec": {"dimensions": ["channel", "page", "user", "countryName"]},
        "metricsSpec": [
            {"type": "count", "name": "edits"},
            {"type": "longSum", "name": "added", "fieldName": "added"},
            {"type": "longMin", "name": "least", "fieldName": "delta"},
            {"type": "distinct", "name": "cities", "fieldName": "cityName"},
        ],
        "granularitySpec": {"queryGranularity": "minute", "segmentGranularity": "hour"},
    }
    figures = [
        ({"type": "longSum", "fieldName": "edits"}, "count(*)", "sum(edits)", "exact"),
        ({"type": "longSum", "fieldName": "added"}, "sum(added)", "sum(added)", "exact"),
        ({"type": "longMin", "fieldName": "least"}, "min(delta)", "min(least)", "exact"),
        ({"type": "distinct", "fieldName": "cities"}, "count(distinct cityName)", None, "distinct"),
    ]
    filters = [
        (None, "true"),
        ({"type": "null", "column": "countryName"}, "countryName is null"),
        ({"type": "selector", "dimension": "channel", "value": "#en.wikipedia"}, "channel = '#en.wikipedia'"),
        ({"type": "like", "dimension": "page", "pattern": "%:%"}, "page like '%:%'"),
        ({"type": "regex", "dimension": "user", "pattern": "[Bb]ot$"}, "regexp_matches(\"user\", '[Bb]ot$')"),
    ]
    columns = ("{time: 'timestamp', channel: 'varchar', page: 'varchar', \"user\": 'varchar', countryName: 'varchar', "
               "cityName: 'varchar', added: 'bigint', delta: 'bigint'}")
    rows = f"read_json('{file}', columns = {columns})"
    return Data("wikiticker", file, rows, "time", schema, "2015-09-12/P2D", figures, filters,
                [None, "channel", "countryName", "page"], ["all", "minute", "hour"])


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


def ask(program, directory, data, condition, group, granularity):
    query = {
        "queryType": "groupBy",
        "dimensions": [group] if group else [],
        "granularity": granularity,
        "intervals": data.interval,
        "aggregations": [{**figure, "name": f"f{at}"} for at, (figure, *_) in enumerate(data.figures)],
    }
    if condition:
        query["filter"] = condition
    rows = json.loads(run(program, "query", json.dumps(query), directory, "--table", "events", "--json", "-q"))
    key = lambda row: (row["timestamp"] if granularity != "all" else None, row["event"].get(group) if group else None)
    return {key(row): [row["event"][f"f{at}"] for at in range(len(data.figures))] for row in rows}


def ask_duckdb(con, table, time, figures, where, group, granularity):
    bucket = "null"
    if granularity != "all":
        bucket = f"strftime(date_trunc('{granularity}', {time}), '%Y-%m-%dT%H:%M:%S.000Z')"
    by = f'"{group}"' if group else "null"
    sql = f"select {bucket}, {by}, {', '.join(figures)} from {table} where {where} group by 1, 2"
    return {(row[0], row[1]): list(row[2:]) for row in con.execute(sql).fetchall()}


def compare(program, data, folder, compared):
    """Asks all questions about events and their facts."""
    directory, facts = os.path.join(folder, data.name), os.path.join(folder, data.name + " facts")
    form = "csv" if ".csv" in data.file else "jsonl"
    ingest = [program, "ingest", data.file, "--format", form, "--dir", directory, "--table", "events", "-q"]
    run(*ingest, "--schema", json.dumps(data.schema), "--seal")
    run(program, "export", directory, "events", "--to", facts, "-q")
    con = duckdb.connect()
    con.execute("set timezone = 'UTC'")
    con.execute(f"create table events as select * from {data.rows}")
    con.execute(f"create table facts as select * from read_parquet('{facts}/*.parquet')")
    con.execute("alter table facts alter column __time type timestamp using __time at time zone 'UTC'")
    in_facts = [at for at, figure in enumerate(data.figures) if figure[2]]
    kinds = [figure[3] for figure in data.figures]
    before = compared.figures, compared.wrong
    for condition, where in data.filters:
        for group in data.groups:
            for granularity in data.granularities:
                what = f"{data.name}: {where}, by {group}, {granularity}"
                found = ask(program, directory, data, condition, group, granularity)
                wanted = [figure[1] for figure in data.figures]
                right = ask_duckdb(con, "events", data.time, wanted, where, group, granularity)
                compared.groups(what, kinds, found, right)
                wanted = [data.figures[at][2] for at in in_facts]
                parquet = ask_duckdb(con, "facts", "__time", wanted, where, group, granularity)
                right = {key: [row[at] for at in in_facts] for key, row in right.items()}
                compared.groups(f"Parquet: {what}", [kinds[at] for at in in_facts], parquet, right)
    figures, wrong = compared.figures - before[0], compared.wrong - before[1]
    print(f"roll-up of {data.name}: {figures} figures compared, {wrong} differ", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sapwood", required=True, help="the program")
    parser.add_argument("--flights", default="datasets/flights-2013.csv.zst", help="the flights")
    parser.add_argument("--wikiticker", help="Wikipedia's edits, such as wikiticker-2015-09-12-sampled.json.gz")
    parser.add_argument("--smoke", action="store_true", help="few events, and those alone that are made up")
    parser.add_argument("--seed", type=int, default=1, help="names the events that are made up")
    args, _ = parser.parse_known_args()
    compared = Compared()
    with tempfile.TemporaryDirectory(prefix="sapwood-duckdb-") as folder:
        compare(args.sapwood, made_up(folder, args.seed, 5_000 if args.smoke else 100_000), folder, compared)
        if not args.smoke:
            compare(args.sapwood, flights(args.flights), folder, compared)
            if args.wikiticker:
                compare(args.sapwood, wikiticker(args.wikiticker), folder, compared)
            else:
                print("roll-up of wikiticker: skipped, give its file by --wikiticker", flush=True)
    print(f"duckdb {duckdb.__version__}: roll-ups, {compared.figures} figures, {compared.wrong} differences")
    if compared.figures == 0:
        print("error: nothing was compared", file=sys.stderr)
    sys.exit(1 if compared.wrong or compared.figures == 0 else 0)


if __name__ == "__main__":
    main()
