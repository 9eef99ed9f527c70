#!/usr/bin/env python3
"""Files in the form of sqllogictest against `sapwood shell`: SQLite's, DataFusion's, DuckDB's.

`cargo xtask logic-tests FOLDER` builds the program and runs this. FOLDER holds the files (`.test`, `.slt`), from a
clone of a suite. Each file has a database of its own in a temporary directory, and a shell that executes its
statements; the shell ends with a statement that fails, and another one goes on with the same directory. Outcomes:

- passed: the answer, its hash, or the error that was expected
- refused: an error that says that there is no such statement, function, type or clause
- errors: any other error where an answer was expected
- follows: not asked, since a statement that made or changed its table was refused
- accepted: an answer where an error was expected
- differs: another answer
- died: a panic, or no answer in time

Answers that differ are listed in differs.txt with their reasons; another one, and a death, end this with an error.
Floats are compared by ten digits, or by as many as are expected behind the point from four on; moments by their value, texts as they stand.
"""

import argparse
import bisect
import collections
import decimal
import hashlib
import json
import os
import re
import selectors
import subprocess
import sys
import tempfile
import time

import figures

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = "docs/sql.md"
HEADER = ["files of", "files", "asked", "passed", "refused", "errors", "accepted", "differ"]
OUTCOMES = ["passed", "refused", "errors", "follows", "accepted", "differs", "died"]
SECONDS_MAX = 60
# Names of what a change says of its rows.
COUNTS = ["inserted", "updated", "deleted", "copied", "rows"]
# Digits behind the point from which on a number that is expected may have been cut there.
PLACES_MIN = 4
# Iterations of a loop, in all of a file.
LOOPS_MAX = 20_000

# The names under which each suite's conditions speak of this program.
NAMES = {"sqlite": {"sapwood", "postgresql"}, "datafusion": {"sapwood", "datafusion"}, "duckdb": {"sapwood", "duckdb"}}
# A condition that is of a clause alone, which is there.
CLAUSE_ONLY = "requires AS when renaming"
# Words that statements begin with; the shell takes other lines for commands.
BEGINNINGS = set("""select insert update delete create alter drop copy describe explain show summarize truncate
    values""".split())
REFUSED = re.compile(
    r"not supported|no function is called|no type is called|is no type|is no aggregate|is no function|there is no |unknown type|expected|"
    r"no infix|no table `(?:pg_|information_schema|duckdb_|sqlite_)|a function `|unsupported|"
    r"not a function|no such option|is not known|not from both|is written as|a table is its name|"
    r"date or a timestamp alone|no interval|takes \w+ arguments?|has no meaning between|cannot be known", re.IGNORECASE)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
MOMENT = re.compile(r"(-?\d{4,}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?(?:Z|\+00(?::?00)?)?$")
CHANGED = re.compile(
    r"\s*(?:create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|unbounded\s+|external\s+)*(?:table|view|macro|sequence|"
    r"schema|type|function)\s+(?:if\s+not\s+exists\s+)?|insert\s+(?:or\s+\w+\s+)?into\s+|replace\s+into\s+|update\s+|"
    r"delete\s+from\s+|alter\s+table\s+(?:if\s+exists\s+)?|truncate\s+(?:table\s+)?|copy\s+)"
    r"([\w.]+|\"[^\"]+\")", re.IGNORECASE)
GONE = re.compile(r"\s*drop\s+(?:table|view)\s+(?:if\s+exists\s+)?([\w.]+)", re.IGNORECASE)
LOST = re.compile(r"\s*(begin|start|commit|rollback|abort|execute|merge|with|attach|use|import|create\s+(?:or\s+replace\s+)?trigger)\b",
                  re.IGNORECASE)
# Sets of types in loops of DuckDB.
TYPES = {
    "<signed>": "tinyint smallint integer bigint hugeint", "<unsigned>": "utinyint usmallint uinteger ubigint uhugeint",
    "<integral>": "tinyint smallint integer bigint hugeint utinyint usmallint uinteger ubigint uhugeint",
    "<numeric>": "tinyint smallint integer bigint hugeint utinyint usmallint uinteger ubigint uhugeint float double",
    "<compression>": "none", "<alltypes>": "tinyint smallint integer bigint hugeint float double bool varchar",
    "<all_types_columns>": "",
}

# Names of types in answers. Numbers are computed in 64 or 128 bits, and decimals in 38 digits.
TYPE_NAMES = [
    (r"\b(tinyint|smallint|integer|bigint|utinyint|usmallint|uinteger)\b", "bigint"),
    (r"\b(hugeint|ubigint)\b", "hugeint"), (r"\buhugeint\b", "uhugeint"), (r"\b(float|real|double)\b", "double"),
    (r"\bdecimal\(\d+, ?(\d+)\)", r"decimal(\1)"), (r"\bvarchar\b", "text"), (r"\bblob\b", "bytes"),
    (r"\bboolean\b", "boolean"), (r"\bdate\b", "date"), (r"\btimestamp(_\w+)?\b", "timestamp"),
]

Record = collections.namedtuple("Record", "kind line names types sort label sql expected")
Outcome = collections.namedtuple("Outcome", "kind detail")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sapwood", required=True, help="the program")
    parser.add_argument("--suite", choices=list(NAMES), help="whose files they are [default: as each looks]")
    parser.add_argument("--queries", type=int, default=300, metavar="COUNT",
                        help="queries of a file at most, spread evenly; 0 for all [default: 300]")
    parser.add_argument("--files", type=int, default=0, metavar="COUNT",
                        help="files of a folder at most, spread evenly; 0 for all [default: 0]")
    parser.add_argument("--only", default="", metavar="TEXT", help="only files whose path has this text")
    parser.add_argument("--verbose", action="store_true", help="errors and what was accepted, too")
    parser.add_argument("--bless", action="store_true", help=f"write the figures into {PAGE}")
    parser.add_argument("folder", help="where the files lie, or one of them")
    args = parser.parse_args()
    known = differences()
    totals = collections.defaultdict(collections.Counter)
    errors, failures = collections.Counter(), 0
    for path in chosen(args.folder, args.only, args.files):
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        suite = args.suite or suite_of(path, text)
        name = os.path.relpath(path, args.folder) if os.path.isdir(args.folder) else os.path.basename(path)
        counts = collections.Counter()
        for record, outcome in run(args.sapwood, sampled(records(text, suite), args.queries), suite):
            kind = outcome.kind
            if kind == "differs" and any(rule(suite, name, record.sql) for rule in known):
                kind = "known"
            counts[kind] += 1
            if kind in ("differs", "died"):
                failures += 1
            if kind == "errors":
                errors[outcome.detail.split("\n")[0]] += 1
            if kind in ("differs", "died") or args.verbose and kind in ("errors", "accepted", "known"):
                indented = (record.sql + "\n" + outcome.detail).replace("\n", "\n    ")
                print(f"  {kind}: {name}:{record.line}:\n    {indented}", flush=True)
        totals[suite, os.path.dirname(name) or "."].update(counts, files=1)
    if not totals:
        sys.exit(f"error: no file below {args.folder} ends in .test or .slt")
    for (suite, folder), counts in sorted(totals.items()):
        print(f"{suite} {folder}: {counts['files']} files, " + figures_of(counts))
    for error, count in errors.most_common(15 if args.verbose else 5):
        print(f"{count:6} times: {error}")
    rows = []
    for suite in sorted({suite for suite, _ in totals}):
        counts = sum((of for (its, _), of in totals.items() if its == suite), collections.Counter())
        print(f"all of {suite}: {counts['files']} files, " + figures_of(counts))
        differs = counts["differs"] + counts["known"] + counts["died"]
        rows.append([suite, counts["files"], asked(counts), counts["passed"], counts["refused"], counts["errors"],
                     counts["accepted"], differs])
    if args.bless:
        figures.bless(PAGE, HEADER, rows)
    if not any(asked(counts) for counts in totals.values()):
        sys.exit("error: no statement was asked")
    sys.exit(1 if failures else 0)


def asked(counts):
    return sum(count for kind, count in counts.items() if kind not in ("files", "follows"))


def figures_of(counts):
    known = f", {counts['known']} known" if counts["known"] else ""
    return f"{asked(counts)} asked: " + ", ".join(f"{counts[kind]} {kind}" for kind in OUTCOMES) + known


def differences():
    """Rules that say whether an answer may differ: a suite, a part of a path, a pattern of statements."""
    known = []
    with open(os.path.join(HERE, "differs.txt"), encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                suite, part, pattern = line.rstrip("\n").split(" ", 2)
                known.append(rule_of(suite, part, re.compile(pattern, re.IGNORECASE | re.DOTALL)))
    return known


def rule_of(suite, part, pattern):
    return lambda its, name, sql: suite in (its, "*") and (part == "*" or part in name) and pattern.search(sql)


def chosen(folder, part, most):
    if os.path.isfile(folder):
        yield folder
        return
    for here, folders, files in os.walk(folder):
        folders.sort()
        paths = [os.path.join(here, file) for file in sorted(files) if file.endswith((".test", ".slt"))]
        paths = [path for path in paths if part in path]
        yield from spread(paths, most)


def spread(items, most):
    if not most or len(items) <= most:
        return items
    return [items[at * len(items) // most] for at in range(most)]


def suite_of(path, text):
    if path.endswith(".slt"):
        return "datafusion"
    is_duckdb = re.search(r"^# (name|group): |^(require|foreach|loop|mode) |^PRAGMA ", text, re.MULTILINE)
    return "duckdb" if is_duckdb else "sqlite"


def sampled(all_records, most):
    """All statements, and some of the queries."""
    queries = [record for record in all_records if record.kind == "query"]
    kept = {id(record) for record in spread(queries, most)}
    return [record for record in all_records if record.kind != "query" or id(record) in kept]


# Records of a file.

def records(text, suite):
    """The statements and queries of a file that are for this program, loops unrolled."""
    blocks, lines = [], text.split("\n")
    at = 0
    while at < len(lines):
        if not lines[at].strip() or lines[at].startswith("#"):
            at += 1
            continue
        begin = at
        while at < len(lines) and lines[at].strip():
            at += 1
        block = [line.rstrip("\r") for line in lines[begin:at]]
        # A line of its own may stand directly before a record.
        while block:
            word = block[0].split()[0]
            if block[0].startswith("#"):
                del block[0]
            elif word in ("statement", "query", "skipif", "onlyif"):
                blocks.append((begin + 1, block))
                break
            else:
                blocks.append((begin + 1, block[:1]))
                del block[0]
            begin += 1
    found = []
    unroll(blocks, {}, suite, found)
    return found


class End(Exception):
    """The end of a file, before its last line."""


def unroll(blocks, variables, suite, found):
    try:
        walk(blocks, variables, suite, found)
    except End:
        pass


def walk(blocks, variables, suite, found):
    at, is_skipped = 0, False
    while at < len(blocks):
        line, block = blocks[at]
        words = block[0].split()
        at += 1
        if words[0] in ("loop", "foreach", "concurrentloop", "concurrentforeach"):
            depth, begin = 1, at
            while at < len(blocks) and depth:
                word = blocks[at][1][0].split()[0]
                depth += 1 if word in ("loop", "foreach", "concurrentloop", "concurrentforeach") else -(word == "endloop")
                at += 1
            values = words[2:]
            if words[0].endswith("loop"):
                try:
                    values = range(int(values[0]), int(values[1]))
                except ValueError:
                    raise End from None
            else:
                values = [value for word in values for value in TYPES.get(word, word).split()]
            for value in values:
                if len(found) > LOOPS_MAX:
                    raise End
                walk(blocks[begin:at - 1], {**variables, words[1]: str(value)}, suite, found)
        elif words[0] == "mode" and len(words) > 1:
            is_skipped = words[1] == "skip" or is_skipped and words[1] != "unskip"
        elif words[0] == "halt":
            raise End
        elif words[0] == "require" and words[1] not in ("vector_size", "noforcestorage", "skip_reload", "64bit"):
            raise End
        elif words[0] in ("require-env", "load", "restart", "test-env", "unzip") and suite == "duckdb":
            raise End
        elif words[0] in ("statement", "query", "skipif", "onlyif") and not is_skipped:
            record = record_of(line, block, variables, suite)
            if record:
                found.append(record)


def record_of(line, block, variables, suite):
    block, is_ours = list(block), True
    while block and block[0].split()[0] in ("skipif", "onlyif"):
        condition = block.pop(0)
        word, name = condition.split()[:2]
        names = name.split(",")
        is_named = any(it.lower() in NAMES[suite] for it in names)
        if word == "skipif" and is_named and CLAUSE_ONLY not in condition or word == "onlyif" and not is_named:
            is_ours = False
    if not is_ours or not block:
        return None
    words = block[0].split()
    body = block[1:]
    expected = None
    if "----" in body:
        expected = body[body.index("----") + 1:]
        body = body[:body.index("----")]
    sql = "\n".join(body)
    for name, value in variables.items():
        sql = sql.replace("${%s}" % name, value)
        expected = expected and [cell.replace("${%s}" % name, value) for cell in expected]
    # Plans are each program's own.
    if re.match(r"\s*explain", sql, re.IGNORECASE):
        return None
    if words[0] == "statement":
        kind = words[1] if len(words) > 1 and words[1] in ("ok", "error", "count") else "maybe"
        return Record(kind, line, None, "", "nosort", None, sql, None)
    if len(words) > 1 and words[1] == "error":
        return Record("error", line, None, "", "nosort", None, sql, None)
    types = words[1] if len(words) > 1 else ""
    sort = next((word for word in words[2:3] if word in ("nosort", "rowsort", "valuesort", "sort")), "nosort")
    label = words[3] if len(words) > 3 else None
    return Record("query", line, None, types, sort, label, sql, expected)


# Statements.

class Died(Exception):
    """A shell that gave no answer: its last words."""


class Shell:
    """A shell over a directory, and another one behind each statement that fails."""

    def __init__(self, program, folder):
        self.program, self.folder, self.process = os.path.abspath(program), folder, None

    def answer(self, sql):
        """Rows of cells, or the text of an error."""
        if self.process is None:
            words = [self.program, "shell", "--json", "--dir", os.path.join(self.folder, "data")]
            self.log = open(os.path.join(self.folder, "stderr"), "w+", encoding="utf-8")
            self.process = subprocess.Popen(words, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=self.log)
            self.rest = b""
        rows, error = [], None
        # A number alone on the first line makes it a command of Redis.
        sql = re.sub(r"^(select\s+\d+)\s*\n", r"\1 ", sql, flags=re.IGNORECASE)
        # A comment at the end would take the semicolon.
        end = "\n;\n" if "--" in sql or "\n" in sql else ";\n"
        try:
            self.process.stdin.write((sql + end + "select 1 as sapwood_marker;\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        for line in self.lines():
            value = json.loads(line, object_pairs_hook=list, parse_float=Float)
            if value and value[0][0] == "sapwood_marker":
                return rows, None
            if value and value[0][0] == "error" and len(value) == 1:
                error = value[0][1]
            elif len(value) == 1 and value[0][0] in COUNTS and CHANGED.match(sql):
                rows.append([value[0][1]])
            elif value and value[0][0] != "done":
                rows.append([cell for _, cell in value])
        code = self.process.wait()
        self.log.seek(0)
        last = self.log.read()
        self.close()
        if error is None or code != 1 or "panicked" in last or "panicked" in error:
            raise Died(f"ended with {code}: {error or ''}{last[-2000:]}")
        return None, error

    def lines(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            limit = time.monotonic() + SECONDS_MAX
            while True:
                while b"\n" in self.rest:
                    line, self.rest = self.rest.split(b"\n", 1)
                    yield line
                if not selector.select(max(0, limit - time.monotonic())):
                    self.close()
                    raise Died(f"no answer in {SECONDS_MAX} s")
                part = os.read(self.process.stdout.fileno(), 1 << 16)
                if not part:
                    return
                self.rest += part

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin = None
            self.process.stdout.close()
            self.log.close()
            self.process = None


class Float(str):
    """A number with a fraction or an exponent, as it was written."""


def run(program, all_records, suite):
    """Each record with its outcome."""
    broken, labels, is_nulls_first, is_lost = set(), {}, False, False
    with tempfile.TemporaryDirectory(prefix="sapwood-logic-") as folder:
        shell = Shell(program, folder)
        try:
            for record in all_records:
                record = record._replace(sql=record.sql.replace("__TEST_DIR__", folder).strip().rstrip(";"))
                # Another order of nulls is asked for, which there is by `nulls first` alone.
                is_nulls_first |= "null_order" in record.sql
                if is_nulls_first and record.sort == "nosort":
                    record = record._replace(sort="rowsort")
                outcome = outcome_of(shell, record, suite, broken, labels)
                # What these would have changed, or taken back, is not known from their texts.
                is_lost |= outcome.kind in ("refused", "follows") and bool(LOST.match(record.sql))
                yield record, Outcome("follows", "") if is_lost and outcome.kind == "differs" else outcome
        finally:
            shell.close()


def outcome_of(shell, record, suite, broken, labels):
    changed = CHANGED.match(record.sql)
    changed = changed and changed.group(1).strip('"').lower()
    words = set(re.findall(r"\w+", record.sql.lower()))
    gone = GONE.match(record.sql)
    if record.kind != "error" and not gone and changed not in broken and words & broken:
        if changed:
            broken.add(changed.split(".")[-1])
        return Outcome("follows", "")
    outcome = asked_of(shell, record, suite, labels)
    if gone and record.kind != "error" and gone.group(1).lower() in broken:
        broken.discard(gone.group(1).lower())
        return outcome if outcome.kind in ("passed", "died") else Outcome("follows", "")
    if changed:
        is_made = re.match(r"\s*create", record.sql, re.IGNORECASE)
        if outcome.kind in ("refused", "errors", "accepted"):
            broken.add(changed.split(".")[-1])
        elif is_made and outcome.kind == "passed" and record.kind != "error":
            broken.discard(changed)
        elif changed in broken:
            return Outcome("follows", "")
    return outcome


def asked_of(shell, record, suite, labels):
    word = (re.findall(r"^(?:\s|--[^\n]*\n|/\*.*?\*/)*(\w+|\()", record.sql, re.DOTALL) or [""])[0].lower()
    if word not in BEGINNINGS and word != "(" or not is_closed(record.sql):
        return Outcome("passed" if record.kind in ("error", "maybe") else "refused", f"no statement begins with {word}")
    try:
        rows, error = shell.answer(record.sql)
    except Died as died:
        return Outcome("died", str(died))
    if record.kind in ("error", "maybe"):
        return Outcome("passed" if error or record.kind == "maybe" else "accepted", "an error was expected")
    if error:
        return Outcome("refused" if REFUSED.search(error) else "errors", error)
    if record.kind in ("ok", "count"):
        return Outcome("passed", "")
    return compared(rows, record, suite, labels)


def is_closed(sql):
    """Whether quotes, comments and parentheses end within a statement: the shell would wait for their ends."""
    bare = re.sub(r"--[^\n]*|/\*.*?\*/|'[^']*'|\"[^\"]*\"", "", sql, flags=re.DOTALL)
    return not re.search(r"['\"]|/\*|\$\w*\$", bare)


# Answers.

def compared(rows, record, suite, labels):
    texts = [[text_of(cell) for cell in row] for row in rows]
    expected = record.expected
    if record.label:
        # Queries of one label have one answer.
        ours = sorted(tuple(canonical(cell) for cell in row) for row in texts)
        first = labels.setdefault((record.label, record.sort), ours)
        if not expected and first != ours:
            return Outcome("differs", f"{record.label} had another answer before: {first[:5]}, now {ours[:5]}")
    if expected is None or record.label and not expected:
        return Outcome("passed", "")
    if "typeof(" in record.sql.lower():
        texts = [[one_type(cell) for cell in row] for row in texts]
        expected = [one_type(line) for line in expected]
    hashed = re.match(r"(\d+) values hashing to ([0-9a-f]{32})$", expected[0]) if len(expected) == 1 else None
    if hashed:
        return compared_hash(rows, record, int(hashed.group(1)), hashed.group(2))
    if expected and re.match(r"<(REGEX|FILE|!REGEX)>:", expected[0]):
        return Outcome("passed", "")
    if suite == "sqlite":
        flat = flat_of(rows, record)
        if flat == expected or [canonical(cell) for cell in flat] == [canonical(cell) for cell in expected]:
            return Outcome("passed", "")
        return Outcome("differs", f"expected {expected[:12]}\nanswered {flat[:12]}")
    width = len(record.types) if not rows else len(rows[0])
    # Cells are a line each, or rows are.
    if width > 1 and len(expected) == len(rows) * width and not any("\t" in line for line in expected):
        theirs = [expected[at:at + width] for at in range(0, len(expected), width)]
        by_words = False
    else:
        theirs = [line.split("\t") for line in expected]
        by_words = suite == "datafusion" or any(len(row) != width for row in theirs)
    if by_words:
        theirs = [line.split() for line in expected]
        texts = [[word for cell in row for word in canonical(cell).split()] for row in texts]
    ours = [[canonical(cell) for cell in row] for row in texts]
    theirs = [[canonical(cell) for cell in row] for row in theirs]
    if record.sort in ("rowsort", "sort"):
        ours, theirs = sorted(ours), sorted(theirs)
    elif record.sort == "valuesort":
        ours, theirs = [sorted([cell for row in side for cell in row]) for side in (ours, theirs)]
        ours, theirs = [ours], [theirs]
    if ours == theirs or len(ours) == len(theirs) and all(
            len(one) == len(two) and all(map(is_near, one, two)) for one, two in zip(ours, theirs)):
        return Outcome("passed", "")
    return Outcome("differs", f"expected {expected[:12]}\nanswered {[' '.join(row) for row in texts][:12]}")


def compared_hash(rows, record, count, wanted):
    flat = flat_of(rows, record)
    found = hashlib.md5("".join(cell + "\n" for cell in flat).encode()).hexdigest()
    if len(flat) == count and found == wanted:
        return Outcome("passed", "")
    return Outcome("differs", f"expected {count} values hashing to {wanted}\nanswered {len(flat)}: {flat[:12]}")


def flat_of(rows, record):
    """Cells as the original runner writes them, by the types of the query and in its order."""
    types = record.types.ljust(len(rows[0]) if rows else 0, "T")
    rows = [[typed(cell, of) for cell, of in zip(row, types)] for row in rows]
    if record.sort == "rowsort":
        rows.sort()
    flat = [cell for row in rows for cell in row]
    return sorted(flat) if record.sort == "valuesort" else flat


def typed(cell, of):
    if cell is None:
        return "NULL"
    if of == "I":
        if isinstance(cell, bool) or isinstance(cell, int):
            return str(int(cell))
        if isinstance(cell, Float):
            return str(int(float(cell)))
        number = re.match(r"\s*[+-]?\d+", cell)
        return str(int(number.group())) if number else "0"
    if of == "R":
        try:
            return f"{float(cell):.3f}"
        except ValueError:
            return "0.000"
    text = text_of(cell)
    return "".join(letter if " " <= letter <= "~" else "@" for letter in text)


def text_of(cell):
    if cell is None:
        return "NULL"
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, list):
        return json.dumps(cell)
    return str(cell) or "(empty)"


def one_type(text):
    """Names of types that are one here, under one name."""
    for pattern, name in TYPE_NAMES:
        text = re.sub(pattern, name, text, flags=re.IGNORECASE)
    return text


def canonical(cell):
    """One text for one value, whichever suite writes it."""
    cell = cell.strip()
    if NUMBER.match(cell):
        try:
            return digits(cell)
        except decimal.DecimalException:
            return cell
    moment = MOMENT.match(cell)
    if moment:
        day, time_of_day, fraction = moment.groups()
        fraction = (fraction or "").rstrip("0").rstrip(".")
        return day if time_of_day == "00:00:00" and not fraction else f"{day}T{time_of_day}{fraction}"
    lower = cell.lower()
    if lower in ("true", "t"):
        return "1"
    if lower in ("false", "f"):
        return "0"
    return {"nan": "NaN", "-nan": "NaN", "inf": "inf", "infinity": "inf", "-inf": "-inf",
            "-infinity": "-inf"}.get(lower, cell)


def digits(text):
    if re.match(r"[+-]?\d+$", text):
        return str(int(text))
    with decimal.localcontext() as context:
        context.prec = 10
        number = +decimal.Decimal(text)
        return "0" if number == 0 else format(number.normalize(), "g" if abs(number.adjusted()) > 30 else "f")


def is_near(ours, theirs):
    """Whether numbers are one but for what is behind the digits that are expected."""
    if ours == theirs:
        return True
    try:
        one, two = float(ours), float(theirs)
    except ValueError:
        return False
    places = len(theirs.partition(".")[2])
    cut = 0.5 * 10.0 ** -places if places >= PLACES_MIN and "e" not in theirs else 0
    return abs(one - two) <= max(1e-9 * max(abs(one), abs(two), 1e-300), cut)


if __name__ == "__main__":
    main()
