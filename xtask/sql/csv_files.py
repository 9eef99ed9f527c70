#!/usr/bin/env python3
"""CSV files as `sapwood sql` reads them, beside Python's reader, cell by cell.

`cargo xtask csv-files FOLDER` builds the program and runs this. Each file below FOLDER that ends in `.csv`, `.tsv` or
`.psv` is read as it stands (`select * from 'file'`): a cell of a text column must be the same text, a number, a date
or a truth value the same value, and a missing value an empty field or one of those that stand for one. Blank lines are no
rows. A file that Python cannot read as a table (other bytes than UTF-8, rows of several lengths) is left out, and
counted; so is one that is refused here, though it is a table there.
"""

import argparse
import collections
import csv
import datetime
import decimal
import io
import itertools
import json
import os
import re
import subprocess
import sys

MISSING = {"", "NA"}
SECONDS_MAX = 300
TRUTHS = {"true": True, "t": True, "yes": True, "1": True, "false": False, "f": False, "no": False, "0": False}
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?) ?(Z|[+-]\d\d(?::?\d\d)?)?)?$")

csv.field_size_limit(1 << 30)


class Irregular(Exception):
    """A file that is no table for Python's reader: the reason."""


class Number(str):
    """A number as it was written."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sapwood", required=True, help="the program")
    parser.add_argument("--bytes", type=int, default=1 << 26, help="of a file at most; larger ones are left out")
    parser.add_argument("--verbose", action="store_true", help="files that were left out, too")
    parser.add_argument("folder", help="where the files lie, or one of them")
    args = parser.parse_args()
    program, counts, cells = os.path.abspath(args.sapwood), collections.Counter(), 0
    for path in chosen(args.folder):
        try:
            if os.path.getsize(path) > args.bytes:
                raise Irregular("it is larger than --bytes")
            found, wrong = compare(program, path)
            kind, said = "differs" if wrong else "equal", wrong
            cells += found
        except Irregular as why:
            kind, said = "left out", [str(why)]
        except Refused as why:
            kind, said = why.kind, [str(why)]
        counts[kind] += 1
        if kind in ("differs", "died") or args.verbose and kind != "equal":
            print(f"  {kind}: {path}: " + "\n    ".join(said), flush=True)
    if not counts["equal"] + counts["differs"]:
        sys.exit(f"error: no file below {args.folder} was compared; next: --verbose says why")
    kinds = ["equal", "differs", "refused", "left out", "died"]
    print(f"{sum(counts.values())} files, {cells} cells compared: " + ", ".join(f"{counts[it]} {it}" for it in kinds))
    sys.exit(1 if counts["differs"] or counts["died"] else 0)


def chosen(folder):
    if os.path.isfile(folder):
        yield folder
    for here, folders, files in os.walk(folder):
        folders.sort()
        for file in sorted(files):
            if file.lower().endswith((".csv", ".tsv", ".psv")):
                yield os.path.join(here, file)


class Refused(Exception):
    """A file that the program did not read, and how that ended."""

    def __init__(self, kind, why):
        super().__init__(why)
        self.kind = kind


def compare(program, path):
    """The number of cells, and the first ones that differ."""
    header, rows = table(path)
    name = os.path.abspath(path).replace("'", "''")
    types = [json.loads(line)["type"] for line in ask(program, f"describe '{name}'").splitlines()]
    answers = ask(program, f"select * from '{name}'").split("\n")[:-1]
    if len(header) != len(types):
        return 1, [f"{len(header)} columns, and {len(types)} answered: {header[:8]}"]
    wrong, cells, width = [], 0, len(header)
    for number, (row, line) in enumerate(itertools.zip_longest(rows, answers)):
        if row is None or line is None:
            wrong.append(f"{len(rows)} rows, and {len(answers)} answered")
            break
        answer = [value for _, value in json.loads(line, object_pairs_hook=list, parse_float=Number,
                                                   parse_int=Number)]
        for at in range(width):
            cells += 1
            if not is_same(row[at], answer[at], types[at]):
                wrong.append(f"row {number + 1}, column {header[at]!r} ({types[at]}): {row[at]!r} is in the file, "
                             f"{answer[at]!r} was answered")
        if len(wrong) > 5:
            break
    return cells, wrong


def ask(program, statement):
    try:
        done = subprocess.run([program, "sql", "--json", "--quiet", statement], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired:
        raise Refused("died", f"no answer in {SECONDS_MAX} s") from None
    error = done.stderr.decode("utf-8", "replace").strip()
    if "panicked" in error or done.returncode not in (0, 1, 2):
        raise Refused("died", f"ended with {done.returncode}: {error[-1000:]}")
    if done.returncode:
        raise Refused("refused", error.split("\n")[0])
    return done.stdout.decode("utf-8")


def table(path):
    """Header and rows, as Python's reader has them."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except UnicodeDecodeError as error:
        raise Irregular(f"it is not UTF-8: {error}") from None
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter(text), strict=True))
    except csv.Error as error:
        raise Irregular(str(error)) from None
    lines = [line for line in lines if line]
    if not lines:
        raise Irregular("it is empty")
    if any(len(line) != len(lines[0]) for line in lines):
        raise Irregular("its rows have several lengths")
    return lines[0], lines[1:]


def delimiter(text):
    """The sign that the first line has most of, outside of quotes."""
    first = re.sub(r'"[^"]*"', "", text[:1 << 16]).lstrip("\r\n").split("\n", 1)[0]
    return max(",;\t|", key=first.count)


def is_same(cell, answer, of):
    if answer is None:
        return cell.strip() in MISSING
    if isinstance(answer, bool):
        return TRUTHS.get(cell.strip().lower()) is answer
    if isinstance(answer, Number) or of in ("f64", "f32", "real", "double"):
        try:
            return is_same_number(decimal.Decimal(cell.strip()), answer)
        except decimal.InvalidOperation:
            return False
    if of == "text":
        return cell == answer
    ours, theirs = MOMENT.match(cell.strip()), MOMENT.match(answer)
    if ours and theirs:
        return moment(ours) == moment(theirs)
    return cell == answer


def is_same_number(number, answer):
    if number.is_nan():
        return answer.lower() == "nan"
    other = decimal.Decimal(answer)
    # A double is the nearest one to what is in the file.
    return number == other or float(number) == float(other)


def moment(match):
    """A moment in UTC: its second, and the digits of its fraction."""
    day, time_of_day, zone = match.groups()
    second, _, fraction = (time_of_day or "00:00:00").partition(".")
    at = datetime.datetime.fromisoformat(f"{day} {second}")
    if zone and zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[3:].strip(":") or 0)
        at -= datetime.timedelta(hours=hours, minutes=minutes) * (-1 if zone[0] == "-" else 1)
    return at, fraction.rstrip("0")


if __name__ == "__main__":
    main()
