#!/usr/bin/env python3
"""Redis's own test suite against `sapwood serve`, and beside it against redis-server.

`cargo xtask redis-suite` builds the program and runs this. The suite is that of Debian's source package of
Redis, fetched into target/redis; it runs as against any server that it did not start (`--host --port`), but for
units that start servers of their own (OWN): there redis_conf.py starts them as redis-server is started. A test
counts if redis-server passes it that way. It passes here; it lacks something, where it fails by a
command or an option that the server does not have; or it fails. Tests that fail are listed in differs.txt
with their reasons: another failure, and a listed test that passes, end this with an error.
"""

import argparse
import os
import random
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

UNITS = """
    unit/auth unit/protocol unit/keyspace unit/scan unit/info unit/info-command unit/type/string unit/type/incr
    unit/expire unit/multi unit/quit unit/acl unit/acl-v2 unit/latency-monitor unit/pubsub unit/pubsubshard
    unit/slowlog unit/introspection unit/introspection-2 unit/limits unit/lazyfree unit/pause unit/querybuf
    unit/pendingquerybuf unit/obuf-limits unit/networking unit/replybufsize unit/shutdown
""".split()

# Units all of whose tests are of servers that the suite has started.
OWN = "unit/auth unit/acl unit/acl-v2 unit/limits unit/obuf-limits unit/networking unit/shutdown".split()

# Lines of the suite that end a unit where a server lacks what only other units need.
PATCHES = [
    ("tests/support/server.tcl", "    r function flush\n", "    catch {r function flush}\n"),
    ("tests/support/server.tcl", "        r config set $param $val\n", "        catch {r config set $param $val}\n"),
]

# What an answer says where the server has no such command or option.
LACKS = re.compile(
    r"Unknown (command or category) name|unknown command (?!or )'?([\w.]+)|unknown subcommand '?([\w-]+)|"
    r"Unknown option or number of arguments for CONFIG SET - '([\w-]+)'|ERR (DEBUG command not allowed)|"
    r"(invalid command specified)|Command '([\w|]+)' not found|no option: (.+)|"
    r"server is running (without a config file)|key \"(pid)\" not known in dictionary",
    re.IGNORECASE,
)
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
RESULT = re.compile(r"^\[(ok|err|exception|ignore|skip|timeout)\]: (.*)$")
UNIT_SECONDS_MAX = 150


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sapwood", required=True, help="the program")
    parser.add_argument("--folder", default="target/redis", help="where the suite lies, or is fetched to")
    parser.add_argument("--verbose", action="store_true", help="the texts of failures, too")
    parser.add_argument("unit", nargs="*", help="only these, such as unit/expire")
    args = parser.parse_args()
    suite = fetched(os.path.abspath(args.folder))
    known = differences()
    totals = {"passed": 0, "lacks": 0, "differs": 0}
    surprises = []
    units = args.unit or UNITS
    for unit in units:
        counted, end = results(suite, unit, redis_server)
        if "The End" not in end:
            sys.exit(f"error: {unit}: redis-server passes no test:\n{end}")
        tests = [name for name, (verdict, _) in counted.items() if verdict == "ok"]
        told = {"passed": [], "lacks": [], "differs": []}
        # A test that ends in the middle leaves replies and transactions behind for the next ones: those that
        # lack something are left out of the next round, until a round finds no more.
        skipped = {}
        while True:
            ours, end = results(suite, unit, lambda port: sapwood_serve(args.sapwood, port), list(skipped))
            found = {name: LACKS.search(ours.get(name, ("gone", end))[1]) for name in tests if name not in skipped}
            lacking = {name: lack for name, lack in found.items() if lack and ours.get(name, ("gone",))[0] != "ok"}
            skipped.update(lacking)
            if not lacking or not any(ours.get(name, ("gone",))[0] != "ok" for name in tests if name not in skipped):
                break
        for name in tests:
            verdict, text = ours.get(name, ("gone", end))
            outcome = "lacks" if name in skipped else "passed" if verdict == "ok" else "differs"
            told[outcome].append(name)
            if outcome == "passed" and (unit, name) in known:
                surprises.append(f"{unit}: {name}: passes, and is listed in differs.txt")
            if outcome == "differs" and (unit, name) not in known:
                surprises.append(f"{unit}: {name}: {text.strip() or 'not reached'}")
            if args.verbose and outcome == "lacks":
                print(f"  lacks {next(filter(None, skipped[name].groups()))}: {name}")
            if args.verbose and outcome == "differs":
                print(f"  differs: {name}\n    " + text.strip().replace("\n", "\n    "))
        for outcome, names in told.items():
            totals[outcome] += len(names)
        counts = ", ".join(f"{len(names)} {outcome}" for outcome, names in told.items())
        print(f"{unit}: {len(tests)} tests, {counts}", flush=True)
    held = totals["passed"] + totals["differs"]
    if not held:
        sys.exit("error: no test was counted; next: run it with --verbose")
    print(f"of the {held} tests of commands that are there, {totals['passed']} pass "
          f"({100 * totals['passed'] / held:.1f} %); {totals['lacks']} more need what is not there")
    for surprise in surprises:
        print(f"unexpected: {surprise}")
    sys.exit(1 if surprises else 0)


def differences():
    """Units and names of tests that are known to fail; reasons are comments above them."""
    known = set()
    with open(os.path.join(HERE, "differs.txt"), encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                known.add(tuple(line.rstrip("\n").split(": ", 1)))
    return known


def fetched(folder):
    """The suite's folder, with its patches."""
    def suites():
        return [it for it in os.listdir(folder) if os.path.exists(f"{folder}/{it}/tests/test_helper.tcl")]

    for program in ["redis-server", "tclsh", "apt-get"]:
        if not shutil.which(program):
            sys.exit(f"error: no {program}; next: apt-get install --no-install-recommends redis-server tcl")
    os.makedirs(folder, exist_ok=True)
    if not suites():
        # Sources are asked for by a list of their own: many machines have none.
        code = subprocess.call(["apt-get", "source", "--download-only", "-qq", "redis"], cwd=folder)
        archives = [it for it in os.listdir(folder) if it.endswith(".orig.tar.gz")]
        if code or not archives:
            sys.exit("error: cannot fetch the source of redis; next: add deb-src to the lists of apt, apt-get update")
        subprocess.check_call(["tar", "xf", archives[0]], cwd=folder)
    suite = os.path.join(folder, suites()[0])
    for path, before, after in PATCHES:
        with open(f"{suite}/{path}", encoding="utf-8") as file:
            text = file.read()
        if after not in text:
            if before not in text:
                sys.exit(f"error: {path} of this version of Redis has no line {before.strip()!r}")
            with open(f"{suite}/{path}", "w", encoding="utf-8") as file:
                file.write(text.replace(before, after))
    return suite


def redis_server(port):
    return ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no", "--enable-debug-command", "yes"]


def sapwood_serve(program, port):
    return [os.path.abspath(program), "serve", "--port", str(port), "--save", "", "--enable-debug-command", "yes"]


def results(suite, unit, command, skipped=()):
    """Tests by name with their verdicts and texts, and the text of what ended the unit."""
    with tempfile.TemporaryDirectory(prefix="sapwood-redis-") as folder:
        if unit in OWN:
            output = by_own_servers(suite, unit, command, skipped, folder)
        else:
            output = beside(suite, unit, command, skipped, folder)
    return parsed(COLOURS.sub("", output), unit)


def beside(suite, unit, command, skipped, folder):
    """The output of a unit about a server that runs already."""
    port = free_port()
    with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
        server = subprocess.Popen(command(port), cwd=folder, stdout=log, stderr=log)
    try:
        await_port(port, server)
        output = of_unit(suite, unit, ["--host", "127.0.0.1", "--port", str(port)], skipped, os.environ)
        if server.poll() is not None and "shutdown" not in unit:
            output += f"\nthe server has ended with {server.returncode}\n"
    finally:
        server.terminate()
        server.wait()
    return output


def by_own_servers(suite, unit, command, skipped, folder):
    """The output of a unit that starts its servers, and what they lack."""
    program = command(0)[0]
    is_redis = program == "redis-server"
    lacks = os.path.join(folder, "lacks")
    start = program if is_redis else f"{sys.executable} -B {shlex.quote(os.path.join(HERE, 'redis_conf.py'))}"
    for name, words in [("redis-server", start), ("redis-cli", "redis-cli"), ("redis-benchmark", "redis-benchmark")]:
        path = f"{suite}/src/{name}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {words} "$@"\n')
        os.chmod(path, 0o755)
    environment = {**os.environ, "SAPWOOD": program, "SAPWOOD_LACKS": lacks}
    output = of_unit(suite, unit, ["--clients", "1"], skipped, environment)
    if os.path.exists(lacks):
        with open(lacks, encoding="utf-8") as file:
            output += "\nno option: " + ", ".join(sorted(set(file.read().split("\n")) - {""})) + "\n"
    return output


def of_unit(suite, unit, words, skipped, environment):
    # The suite takes a port below this one, and looks 10,000 above it as well.
    base_port = random.randrange(20_000, 30_000)
    run = ["tclsh", "tests/test_helper.tcl", *words, "--single", unit]
    run += ["--durable", "--tags", "-large-memory", "--baseport", str(base_port), "--portcount", "100"]
    run += [word for name in skipped for word in ("--skiptest", name)]
    suite_run = subprocess.Popen(run, cwd=suite, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 env=environment, start_new_session=True)
    try:
        output, _ = suite_run.communicate(timeout=UNIT_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        # The run has children, which hold its output open.
        os.killpg(suite_run.pid, 9)
        output, _ = suite_run.communicate()
    return output.decode("utf-8", "replace")


def parsed(output, unit):
    tests, current, end = {}, None, []
    for line in output.split("\n"):
        result = RESULT.match(line)
        if line.startswith(("Testing ", "[testing]", "[ready]", "[done]", "!!! WARNING", "===")):
            current = None
        elif result:
            verdict, name = result.groups()
            name = re.sub(r" \(\d+ ms\)$", "", name)
            where = f" in tests/{unit}.tcl"
            if verdict == "err" and name.endswith(where):
                current = name.removesuffix(where)
                tests[current] = ("err", "")
            elif verdict == "ok":
                current = None
                tests.setdefault(name, ("ok", ""))
            else:
                current = None
                if verdict in ("err", "exception", "timeout"):
                    end.append(line)
        elif current is not None:
            verdict, text = tests[current]
            tests[current] = (verdict, text + line + "\n")
        else:
            end.append(line)
    # Traces of the suite's own procedures say nothing of the server.
    return tests, "\n".join(end[-40:])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port, server):
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if server.poll() is not None:
            break
        time.sleep(0.05)
    sys.exit(f"error: no server at port {port}")


if __name__ == "__main__":
    main()
