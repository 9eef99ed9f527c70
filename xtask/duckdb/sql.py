#!/usr/bin/env python3
"""Asks `sapwood sql` and DuckDB the same random questions in SQL, about the same rows.

Rows are made up, written as Parquet by DuckDB, and asked for as that file and as tables of each engine, which
`sapwood sql` makes of it. `cargo xtask duckdb` runs this behind `rollup.py`. Answers must be equal: all values exactly but
floats, which may differ by 1e-9 of their size. Where the two mean different things, the question is written for each:

- `/` of whole numbers is whole, as in the standard; DuckDB's `//` is.
- A division by zero is an error; DuckDB answers null. Divisors are never zero here.
- Whole numbers of up to 64 bits are computed in 64 bits; DuckDB's columns are therefore all bigint.
"""

import argparse
import datetime
import decimal
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import duckdb

FLOAT_SHARE = 1e-9
COLUMNS = ["id", "g", "h", "n", "m", "f", "p", "b", "d", "ts", "t"]
TEXTS = ["", "a", "b", "ab", "Abc", "zz", "naïve", "100%", "a_b", "x'y", "日本", "long text of more than fifteen bytes"]
# Words of both for a number that does not fit.
OVERFLOWS = ["too large", "Overflow", "out of range", "Out of Range"]
GROUPS = ["red", "green", "blue", "a colour of more than fifteen bytes"]


def rows(count, draw):
    def some(value, nulls=0.15):
        return None if draw.random() < nulls else value

    start = datetime.datetime(1999, 12, 30)
    for number in range(count):
        floating = draw.choice([draw.uniform(-1e3, 1e3), float(draw.randrange(-5, 5)), 0.0, -0.0, float("nan"), 1e-9])
        moment = start + datetime.timedelta(microseconds=draw.randrange(10 ** 14))
        yield (
            number, draw.choice(GROUPS), some(draw.choice(TEXTS)), some(draw.randrange(-50, 50)),
            draw.choice([draw.randrange(-2 ** 40, 2 ** 40), draw.randrange(-3, 3)]), some(floating),
            some(decimal.Decimal(draw.randrange(-10 ** 6, 10 ** 6)) / 100), some(draw.random() < 0.5),
            some((start + datetime.timedelta(days=draw.randrange(0, 900))).date()), some(moment),
            some(draw.choice(TEXTS)))


class Question:
    """Random expressions: each is a pair, for Sapwood and for DuckDB."""

    def __init__(self, draw):
        self.draw = draw

    def pick(self, *choices):
        return self.draw.choice(choices)()

    @staticmethod
    def both(text, *parts):
        return tuple(text.format(*(part[side] for part in parts)) for side in (0, 1))

    def same(self, text):
        return (text, text)

    def whole(self, depth):
        leaf = lambda: self.same(self.draw.choice(["n", "m", "id", "n", str(self.draw.randrange(-9, 9))]))
        if depth == 0:
            return leaf()
        inner = lambda: self.whole(depth - 1)
        divisor = lambda: self.same(self.draw.choice(["3", "7", "(id + 1)", "-4", "nullif(n, 0)"]))
        slash = lambda: tuple(side.format(*parts) for side, parts in zip(
            ("(({0}) / {1})", "(({0}) // {1})"), zip(inner(), divisor())))
        return self.pick(
            leaf,
            lambda: self.both("({} + {})", inner(), inner()),
            lambda: self.both("({} - {})", inner(), inner()),
            lambda: self.both("({} * {})", self.whole(0), self.whole(0)),
            slash,
            lambda: self.both("(({}) % {})", inner(), divisor()),
            lambda: self.both("abs({})", inner()),
            lambda: self.both("(-({}))", inner()),
            lambda: self.both("case when {} then {} else {} end", self.truth(depth - 1), inner(), inner()),
            lambda: self.both("coalesce({}, {})", inner(), inner()),
            lambda: self.both("nullif({}, {})", inner(), inner()),
            lambda: self.both("greatest({}, {})", inner(), inner()),
            lambda: self.both("length({})", self.text(depth - 1)),
            lambda: self.both("extract({} from {})", self.same(self.draw.choice(
                ["year", "month", "day", "quarter", "dow", "doy", "week", "isodow"])), self.day(0)),
            lambda: self.both("extract({} from ts)", self.same(self.draw.choice(["hour", "minute", "second", "year"]))),
            lambda: self.both("date_diff('{}', {}, {})", self.same(self.draw.choice(["day", "month", "year"])),
                              self.day(0), self.day(0)),
            lambda: self.both("cast({} as bigint)", self.truth(0)),
            lambda: self.both("sign({})", inner()),
            lambda: self.both("strpos({}, {})", self.text(0), self.text(0)),
        )

    def floating(self, depth):
        leaf = lambda: self.same(self.draw.choice(["f", "f", "1.5e0", "-2e0", "0e0"]))
        if depth == 0:
            return leaf()
        inner = lambda: self.floating(depth - 1)
        return self.pick(
            leaf,
            lambda: self.both("({} + {})", inner(), inner()),
            lambda: self.both("({} * {})", inner(), self.floating(0)),
            lambda: self.both("({} - {})", inner(), self.whole(0)),
            lambda: self.both("({} / {})", inner(), self.same(self.draw.choice(["3e0", "(id + 1)", "-0.5e0"]))),
            lambda: self.both("cast({} as double)", self.whole(depth - 1)),
            lambda: self.both("abs({})", inner()),
            lambda: self.both("floor({})", inner()),
            lambda: self.both("atan({})", inner()),
            lambda: self.both("cos({})", self.whole(0)),
            lambda: self.both("cast(p as double)"),
            lambda: self.both("case when {} then {} else {} end", self.truth(depth - 1), inner(), inner()),
        )

    def decimals(self, depth):
        if depth == 0:
            return self.same(self.draw.choice(["p", "p", "1.50", "-0.25"]))
        inner = lambda: self.decimals(depth - 1)
        return self.pick(
            lambda: self.both("({} + {})", inner(), self.decimals(0)),
            lambda: self.both("({} - {})", inner(), self.decimals(0)),
            lambda: self.both("(p * {})", self.same(self.draw.choice(["2", "1.5", "-3"]))),
            lambda: self.both("coalesce({}, {})", inner(), self.decimals(0)),
        )

    def text(self, depth):
        quoted = lambda: self.same("'" + self.draw.choice(TEXTS).replace("'", "''") + "'")
        leaf = lambda: self.pick(lambda: self.same(self.draw.choice(["g", "h", "t", "h"])), quoted)
        if depth == 0:
            return leaf()
        inner = lambda: self.text(depth - 1)
        return self.pick(
            leaf,
            lambda: self.both("({} || {})", inner(), inner()),
            lambda: self.both("upper({})", inner()),
            lambda: self.both("lower({})", inner()),
            lambda: self.both("substr({}, {})", inner(), self.same(str(self.draw.randrange(1, 4)))),
            lambda: self.both("substr({}, {}, {})", inner(), self.same(str(self.draw.randrange(1, 4))),
                              self.same(str(self.draw.randrange(0, 4)))),
            lambda: self.both("replace({}, 'a', {})", inner(), leaf()),
            lambda: self.both("trim({})", inner()),
            lambda: self.both("concat({}, {})", inner(), inner()),
            lambda: self.both("left({}, 2)", inner()),
            lambda: self.both("case when {} then {} end", self.truth(depth - 1), inner()),
            lambda: self.both("cast({} as text)", self.whole(depth - 1)),
            lambda: self.both("cast({} as text)", self.day(0)),
            lambda: self.both("reverse({})", inner()),
            lambda: self.both("strftime({}, '%Y-%m-%d %j %a %U %W')", self.day(0)),
            lambda: self.both("strftime(ts, '%d %b %y %I:%M:%S %p %f')"),
        )

    def day(self, depth):
        if depth == 0:
            return self.same(self.draw.choice(["d", "d", "date '2000-02-29'", "date '2001-12-31'"]))
        return self.pick(
            lambda: self.both("({} + {})", self.day(0), self.same(str(self.draw.randrange(40)))),
            lambda: self.both("cast(ts as date)"),
            lambda: self.both("last_day({})", self.day(0)),
            lambda: self.both("coalesce({}, {})", self.day(0), self.day(0)),
            lambda: self.both("greatest({}, {})", self.day(0), self.day(0)),
        )

    def moment(self, depth):
        unit = self.same(self.draw.choice(["hour", "minute", "day", "month", "quarter", "year", "week", "second"]))
        return self.pick(
            lambda: self.same("ts"),
            lambda: self.both("date_trunc('{}', ts)", unit),
            lambda: self.both("time_bucket(interval '{} {}', ts)", self.same(str(self.draw.randrange(1, 9))),
                              self.same(self.draw.choice(["days", "hours", "minutes", "months"]))),
            lambda: self.both("(ts + interval '{} {}')", self.same(str(self.draw.randrange(1, 9))),
                              self.same(self.draw.choice(["days", "hours", "minutes", "months"]))),
        )

    def truth(self, depth):
        comparison = self.same(self.draw.choice(["=", "<>", "<", "<=", ">", ">="]))
        kinds = [self.whole, self.floating, self.text, self.day, self.decimals]
        of = self.draw.choice(kinds)
        leaf = lambda: self.pick(
            lambda: self.same("b"),
            lambda: self.both("({} {} {})", of(0), comparison, of(0)),
            lambda: self.both("({} is {}null)", self.same(self.draw.choice(COLUMNS)),
                              self.same(self.draw.choice(["", "not "]))),
            lambda: self.both("({} between {} and {})", of(0), of(0), of(0)),
            lambda: self.both("({} {}in ({}, {}, {}))", of(0), self.same(self.draw.choice(["", "not "])),
                              of(0), of(0), self.pick(lambda: of(0), lambda: self.same("null"))),
            lambda: self.both("({} {}like '{}')", self.text(0), self.same(self.draw.choice(["", "not "])),
                              self.same(self.draw.choice(["%a%", "a%", "%b", "_", "%", "a_b", "", "__%", "%%c"]))),
            lambda: self.both("({} is {}distinct from {})", of(0), self.same(self.draw.choice(["", "not "])), of(0)),
            lambda: self.both("(ts >= '2000-06-01' and ts < timestamp '2001-01-01 12:00:00')"),
            lambda: self.both("(id {} {})", comparison, self.same(str(self.draw.randrange(0, 300)))),
            lambda: self.both("(g = 'red' and id between {} and {})", self.same(str(self.draw.randrange(0, 300))),
                              self.same(str(self.draw.randrange(0, 300)))),
        )
        if depth == 0:
            return leaf()
        inner = lambda: self.truth(depth - 1)
        return self.pick(
            leaf,
            lambda: self.both("({} and {})", inner(), inner()),
            lambda: self.both("({} or {})", inner(), inner()),
            lambda: self.both("(not {})", inner()),
            lambda: self.both("({} {} {})", of(depth), comparison, of(depth)),
            lambda: self.both("({} is {}true)", inner(), self.same(self.draw.choice(["", "not "]))),
        )

    def value(self, depth):
        return self.draw.choice([self.whole, self.floating, self.text, self.day, self.moment, self.truth,
                                 self.decimals])(depth)

    def aggregate(self, depth):
        number = lambda: self.pick(lambda: self.whole(depth), lambda: self.floating(depth), lambda: self.decimals(depth))
        of = self.pick(
            lambda: self.same("count(*)"),
            lambda: self.both("count({})", self.value(depth)),
            lambda: self.both("sum({})", self.pick(lambda: self.whole(depth), lambda: self.floating(depth))),
            lambda: self.both("sum({})", self.decimals(depth)),
            lambda: self.both("avg({})", number()),
            lambda: self.both("min({})", self.value(depth)),
            lambda: self.both("max({})", self.value(depth)),
            lambda: self.both("count(distinct {})", self.value(depth)),
            lambda: self.both("sum(distinct {})", self.whole(depth)),
            lambda: self.both("median({})", self.whole(depth)),
            lambda: self.both("quantile_cont({}, 0.25)", self.floating(0)),
            lambda: self.both("quantile_disc({}, 0.9)", self.whole(depth)),
            lambda: self.both("bool_and({})", self.truth(depth)),
            lambda: self.both("bool_or({})", self.truth(depth)),
            lambda: self.both("stddev_pop({})", self.same("n")),
            lambda: self.both("var_samp({})", self.same("n")),
            lambda: self.same("covar_pop(n, id)"),
            lambda: self.same("arg_max(n, id)"),
            lambda: self.same("arg_min(h, id)"),
            lambda: self.same("string_agg(h, '-' order by id desc)"),
        )
        if self.draw.random() < 0.2:
            return self.both("{} filter (where {})", of, self.truth(depth))
        return of

    def statement(self, table):
        where = self.pick(lambda: self.same(""), lambda: self.both(" where {}", self.truth(2)))
        limit = ""
        if self.draw.random() < 0.5:
            outputs = [self.value(2) for _ in range(self.draw.randrange(1, 4))] + [self.same("id")]
            listed = self.both(", ".join("{}" for _ in outputs), *outputs)
            directions = [self.draw.choice(["", " desc", " nulls first", " desc nulls first"]) for _ in outputs]
            order = ", ".join(f"{at + 1}{direction}" for at, direction in enumerate(directions))
            if self.draw.random() < 0.5:
                limit = f" limit {self.draw.randrange(0, 30)} offset {self.draw.randrange(0, 5)}"
            return self.both("select {} from {{}}{} order by {}{}", listed, where, self.same(order), self.same(limit))
        if self.draw.random() < 0.2:
            listed = self.both("{}, {}", self.value(1), self.same("g"))
            return self.both("select distinct {} from {{}}{} order by 1, 2", listed, where)
        groups = [self.draw.choice([
            lambda: self.same("g"), lambda: self.same("h"), lambda: self.same("b"), lambda: self.whole(1),
            lambda: self.both("date_trunc('month', d)"), lambda: self.text(1), lambda: self.same("d"),
            lambda: self.same("f"), lambda: self.same("p")])() for _ in range(self.draw.randrange(0, 3))]
        # A constant would be the number of a result.
        groups = [group for group in groups if any(letter.isalpha() for letter in group[0])]
        aggregates = [self.aggregate(1) for _ in range(self.draw.randrange(1, 4))]
        outputs = groups + aggregates
        listed = self.both(", ".join("{}" for _ in outputs), *outputs)
        grouped = self.both(" group by " + ", ".join(str(at + 1) for at in range(len(groups)))) if groups else ("", "")
        having = self.pick(lambda: self.same(""), lambda: self.same(" having count(*) > 2")) if groups else ("", "")
        order = " order by " + ", ".join(str(at + 1) for at in range(len(groups))) if groups else ""
        return self.both("select {} from {{}}{}{}{}{}", listed, where, grouped, having, self.same(order))


def canonical(value):
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, datetime.datetime):
        text = value.strftime("%Y-%m-%d %H:%M:%S.%f")
        return text.rstrip("0").rstrip(".")
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value


def equal(ours, theirs):
    """Whether two values are the same. Ours is read from JSON: all numbers are decimals or whole."""
    theirs = canonical(theirs)
    if isinstance(theirs, bool) or isinstance(ours, bool) or theirs is None or ours is None:
        return ours is theirs or ours == theirs and type(ours) is type(theirs)
    if isinstance(theirs, str):
        # A day that is truncated stays a day, and is a moment in DuckDB.
        return ours == theirs or isinstance(ours, str) and ours + " 00:00:00" == theirs
    if isinstance(ours, str):
        return False
    if isinstance(theirs, float) or isinstance(ours, decimal.Decimal) and not isinstance(theirs, (int, decimal.Decimal)):
        ours, theirs = float(ours), float(theirs)
        return ours == theirs or abs(ours - theirs) <= FLOAT_SHARE * max(abs(ours), abs(theirs))
    if isinstance(theirs, decimal.Decimal):
        return decimal.Decimal(ours) == theirs or abs(float(ours) - float(theirs)) <= FLOAT_SHARE * abs(float(theirs))
    return decimal.Decimal(ours) == theirs


class Sapwood:
    def __init__(self, program):
        self.program = program

    def run(self, sql, *options):
        done = subprocess.run([self.program, "sql", sql, "--json", "--quiet", *options], capture_output=True, text=True)
        if done.returncode not in (0, 1, 2):
            sys.exit(f"{sql}\nended with {done.returncode}: {done.stderr}")
        if done.returncode:
            return None, done.stderr.strip()
        answer = []
        for line in done.stdout.splitlines():
            pairs = json.loads(line, parse_float=decimal.Decimal, object_pairs_hook=list)
            answer.append([value for _, value in pairs])
        return answer, None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sapwood", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--questions", type=int, default=3000)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.questions = 120
    draw = random.Random(arguments.seed)
    sapwood = Sapwood(arguments.sapwood)
    with tempfile.TemporaryDirectory() as folder:
        duck = duckdb.connect()
        duck.execute("create table t (id bigint, g text, h text, n bigint, m bigint, f double, p decimal(10,2), b boolean, "
                     "d date, ts timestamp, t text)")
        duck.executemany("insert into t values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", list(rows(arguments.rows, draw)))
        file = os.path.join(folder, "t.parquet")
        duck.execute(f"copy t to '{file}'")
        directory = os.path.join(folder, "tables")
        columns = ("id bigint not null, g text not null, h text, n smallint, m bigint not null, f double, p decimal(10,2), "
                   "b boolean, d date, ts timestamp, t text")
        tables = {"parquet": f"'{file}'"}
        made = [f"create table free as select * from '{file}'"]
        tables["free"] = f"'{directory}'.free"
        for engine, key in (("ordered", "g, id"), ("hash", "id"), ("tree", "id, g")):
            made.append(f"create table {engine}_rows ({columns}, primary key ({key})) with (engine = '{engine}')")
            made.append(f"copy {engine}_rows from '{file}'")
            tables[engine] = f"'{directory}'.{engine}_rows"
        _, error = sapwood.run("; ".join(made), "--dir", directory)
        if error:
            sys.exit(f"the tables cannot be made: {error}")
        asked = refused = differences = 0
        question = Question(draw)
        for number in range(arguments.questions):
            ours, theirs = question.statement("t")
            theirs = theirs.format("t")
            try:
                expected = duck.execute(theirs).fetchall()
                why = None
            except duckdb.Error as error:
                expected, why = None, str(error)
            kind = "parquet" if number % 2 else draw.choice(list(tables))
            sql = ours.format(tables[kind])
            if arguments.verbose:
                print(sql)
            answer, error = sapwood.run(sql)
            asked += 1
            if expected is None or answer is None:
                refused += 1
                # Where numbers run over, each may have more room than the other in between.
                if expected is None and answer is None or any(word in (error or why) for word in OVERFLOWS):
                    continue
                differences += 1
                print(f"\n{sql}\n  {theirs}\n  sapwood: {error or answer[:3]}\n  DuckDB:  {why or expected[:3]}")
                continue
            same = len(answer) == len(expected) and all(
                len(left) == len(right) and all(map(equal, left, right)) for left, right in zip(answer, expected))
            if not same:
                differences += 1
                for left, right in zip(answer, expected):
                    if not all(map(equal, left, right)):
                        break
                else:
                    left, right = f"{len(answer)} rows", f"{len(expected)} rows"
                print(f"\n{sql}\n  {theirs}\n  sapwood: {left}\n  DuckDB:  {right}")
            if differences >= 10:
                break
    print(f"{asked} questions, {refused} of them refused by one or both, {differences} differences (seed {arguments.seed})")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
