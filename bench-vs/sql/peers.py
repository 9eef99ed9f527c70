#!/usr/bin/env python3
"""DuckDB, SQLite and polars under the library's workloads of `sapwood-bench sql`.

Takes a command a line on standard input, a JSON object, and answers with a JSON object a line, so that the
bench interleaves these runs with its own:

    open     opens a database of DuckDB or SQLite, or names the CSV file that polars reads
    ask      asks a question again and again until some time has passed, and answers with the last rows
    get      looks rows up by their keys
    update   changes a column of rows by their keys
    close    closes what was opened
"""

import datetime
import json
import sqlite3
import sys
import time
import traceback

import duckdb
import polars


def main():
    engines = {}
    for line in sys.stdin:
        try:
            command = json.loads(line)
            do, engine = command.pop("do"), command.pop("engine")
            if do == "open":
                engines[engine] = OPENED[engine](**command)
                answer = {}
            elif do == "close":
                engines.pop(engine).close()
                answer = {}
            else:
                answer = getattr(engines[engine], do)(**command)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


def again(least_ns, work):
    """Does work until some time has passed: how often, how long it took, and the last answer."""
    times, begin = 0, time.perf_counter_ns()
    while True:
        answer = work()
        times += 1
        elapsed = time.perf_counter_ns() - begin
        if elapsed >= least_ns:
            return times, elapsed, answer


class Engine:
    def ask(self, question, least_ns):
        times, elapsed, rows = again(least_ns, lambda: self.rows(question))
        return {"times": times, "elapsed_ns": elapsed, "rows": rows}

    def close(self):
        pass


class Database(Engine):
    def __init__(self, connection):
        self.connection = connection

    def rows(self, question):
        cursor = self.connection.execute(question)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row)) for row in cursor.fetchall()]

    def get(self, question, keys, least_ns):
        keys = [self.key(*key) for key in keys]

        def look_up():
            found = [self.connection.execute(question, key).fetchone() for key in keys]
            return [row[0] for row in found if row is not None]

        times, elapsed, found = again(least_ns, look_up)
        return {"times": times * len(keys), "elapsed_ns": elapsed, "rows": len(found), "sum": sum(found)}

    def update(self, question, keys, numbers, least_ns):
        changes = [(number, *self.key(*key)) for number, key in zip(numbers, keys)]

        def change():
            for values in changes:
                self.connection.execute(question, values)

        times, elapsed, _ = again(least_ns, change)
        return {"times": times * len(changes), "elapsed_ns": elapsed}

    def close(self):
        self.connection.close()


class Duckdb(Database):
    def __init__(self, path):
        super().__init__(duckdb.connect(path))

    def key(self, hour, carrier, flight):
        return datetime.datetime.fromisoformat(hour.removesuffix("Z")), carrier, flight


class Sqlite(Database):
    def __init__(self, path):
        super().__init__(sqlite3.connect(path, isolation_level=None))
        # As ours: what is changed outlives the process.
        self.connection.execute("pragma journal_mode = wal")
        self.connection.execute("pragma synchronous = off")

    def key(self, *key):
        return key


class Polars(Engine):
    def __init__(self, path):
        self.path = path

    def rows(self, question):
        # The file is read each time: nothing of it stays in memory.
        frame = polars.scan_csv(self.path, null_values=["NA", ""])
        return polars.SQLContext(rows=frame).execute(question).collect().to_dicts()


OPENED = {"duckdb": Duckdb, "sqlite": Sqlite, "polars": Polars}

if __name__ == "__main__":
    main()
