#!/usr/bin/env python3
"""DuckDB and DataFusion under the workloads of `sapwood-bench rollup`.

Takes a command a line on standard input, a JSON object, and answers with a JSON object a line, so that the
bench interleaves these runs with its own:

    load   reads rows, an Arrow file, and writes their facts, a Parquet file, sorted by time
    fold   groups the rows into facts, in memory
    ask    asks for facts, in memory or in Parquet, again and again until some time has passed
"""

import json
import os
import sys
import time
import traceback

import datafusion
import duckdb
import pyarrow
import pyarrow.compute
import pyarrow.ipc

HOUR = 3_600_000


def main():
    peers = Peers()
    for line in sys.stdin:
        try:
            command = json.loads(line)
            answer = getattr(peers, command.pop("do"))(**command)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Peers:
    def load(self, rows, facts, millis, dimensions, x, y, one, two, top, first, filter):
        with pyarrow.ipc.open_file(rows) as file:
            self.batches = [file.get_batch(at) for at in range(file.num_record_batches)]
        self.rows = pyarrow.Table.from_batches(self.batches)
        self.millis, self.x, self.y = millis, quoted(x), quoted(y)
        self.dimensions = ", ".join(map(quoted, dimensions))
        self.one, self.two, self.top = quoted(one), ", ".join(map(quoted, two)), quoted(top)
        self.first = first
        column, text = filter
        self.filter = quoted(column) + " = '" + text.replace("'", "''") + "'"
        # Of a set before this one.
        self.engines = {"duckdb": DuckDb(self.rows, facts), "datafusion": DataFusion(self.batches, facts)}
        duck = self.engines["duckdb"].connection
        duck.execute(f"copy ({self.facts('//')} order by time) to '{facts}' (format parquet)")
        return {"parquet_bytes": os.path.getsize(facts)}

    def fold(self, engine, threads):
        engine = self.engines[engine]
        engine.use(threads)
        begin = time.perf_counter_ns()
        engine.fold(self.facts(engine.division))
        elapsed = time.perf_counter_ns() - begin
        total = engine.run(True, 'select count(*) as groups, sum("rows") as "rows", sum("x sum") as x from {facts}')
        groups, rows, x = (total.column(name)[0].as_py() for name in ("groups", "rows", "x"))
        return {"elapsed_ns": elapsed, "groups": int(groups), "rows": int(rows), "sum": int(x)}

    def ask(self, engine, threads, question, live, least_ns):
        engine = self.engines[engine]
        engine.use(threads)
        text = self.question(question, engine.division)
        times, begin = 0, time.perf_counter_ns()
        while True:
            answer = engine.run(live, text)
            times += 1
            elapsed = time.perf_counter_ns() - begin
            if elapsed >= least_ns:
                break
        total = lambda name: int(pyarrow.compute.sum(answer.column(name)).as_py() or 0)
        # Of equal sums any may be among the first, so their rows say nothing.
        rows = 0 if question == "top-n" else total("rows")
        return {"elapsed_ns": elapsed, "times": times, "groups": answer.num_rows, "rows": rows, "sum": total("x")}

    def facts(self, division):
        """A question that makes facts of rows. Whole numbers are divided by another sign in each engine."""
        if self.millis == 0:
            bucket = "cast(0 as bigint)"
        elif self.millis == 1:
            bucket = "time"
        else:
            bucket = f"(time {division} {self.millis}) * {self.millis}"
        return (
            f'select {bucket} as time, {self.dimensions}, count(*) as "rows", cast(sum({self.x}) as bigint) as "x sum", '
            f'sum({self.y}) as "y sum", min({self.x}) as "x min", max({self.y}) as "y max" '
            f"from batches group by {'' if self.millis == 0 else '1, '}{self.dimensions}"
        )

    def question(self, name, division):
        figures = 'sum("rows") as "rows", sum("x sum") as x, sum("y sum") as y from {facts}'
        hour = f"time {division} {HOUR}"
        match name:
            case "timeseries":
                return f"select {hour} as hour, {figures} group by 1 order by 1"
            case "group-by-one":
                return f"select {self.one}, {figures} group by {self.one}"
            case "group-by":
                return f"select {self.two}, {figures} group by {self.two}"
            case "top-n":
                return f"select {self.top}, {figures} group by {self.top} order by x desc limit {self.first}"
            case "filter":
                return f"select {hour} as hour, {figures} where {self.filter} group by 1 order by 1"
        raise ValueError(f"no question is called {name}")


class DuckDb:
    """Rows are a table over the Arrow batches; facts are a table of its own."""

    division = "//"

    def __init__(self, rows, facts):
        self.connection = duckdb.connect()
        self.connection.execute("set parquet_metadata_cache = true")
        self.connection.register("batches", rows)
        self.parquet = f"'{facts}'"

    def use(self, threads):
        self.connection.execute(f"set threads = {threads}")

    def fold(self, text):
        self.connection.execute("create or replace table facts as " + text)

    def run(self, live, text):
        return self.connection.sql(text.format(facts="facts" if live else self.parquet)).to_arrow_table()


class DataFusion:
    """Rows lie in a partition for each thread; facts are Arrow batches, as it answers with them."""

    division = "/"

    def __init__(self, batches, facts):
        self.batches, self.path = batches, facts
        self.contexts = {}
        self.live = None

    def use(self, threads):
        if threads not in self.contexts:
            config = datafusion.SessionConfig().with_target_partitions(threads)
            context = datafusion.SessionContext(config)
            parts = [self.batches[at::threads] for at in range(threads)]
            context.register_record_batches("batches", [part for part in parts if part])
            self.contexts[threads] = context
        self.context = self.contexts[threads]

    def fold(self, text):
        # One list of batches a partition.
        self.live = self.context.sql(text).collect_partitioned()
        for context in self.contexts.values():
            if context.table_exist("live"):
                context.deregister_table("live")

    def run(self, live, text):
        if live and not self.context.table_exist("live"):
            self.context.register_record_batches("live", self.live)
        if not live and not self.context.table_exist("parquet"):
            self.context.register_parquet("parquet", self.path)
        frame = self.context.sql(text.format(facts="live" if live else "parquet"))
        return pyarrow.Table.from_batches(frame.collect(), schema=frame.schema())


if __name__ == "__main__":
    main()
