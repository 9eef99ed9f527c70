#!/usr/bin/env python3
"""redis-py's own tests against `sapwood serve`, and beside it against redis-server.

`cargo xtask redis-py` builds the program and runs this with the Python of an environment in target/redis-py. The
tests come with redis-py's source package, of the version that crates/server/tests/clients pins. A test counts if it
passes with redis-server, where that is installed. It passes here; it lacks something, where it fails by a command or an
option that the server does not have; or it differs. Tests that differ are listed in redis-py-differs.txt with their
reasons: another one, and a listed test that passes, end this with an error.
"""

import argparse
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import suite

PINNED = os.path.join(os.path.dirname(os.path.dirname(suite.HERE)), "crates/server/tests/clients/python/requirements.txt")
TOOLS = ["pytest==7.4.4", "pytest-asyncio==0.21.2", "pytest-timeout==2.3.1", "mock==5.1.0", "packaging", "cachetools"]
# What is about modules, clusters, sentinels and certificates needs other servers.
FILES = """
    commands connection connection_pool credentials encoding lock monitor multiprocessing pipeline pubsub retry
    scripting
""".split()
SECONDS_MAX = 900
TEST_SECONDS_MAX = 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sapwood", required=True, help="the program")
    parser.add_argument("--folder", default="target/redis-py", help="where the tests lie, or are fetched to")
    parser.add_argument("--verbose", action="store_true", help="the texts of failures, too")
    parser.add_argument("file", nargs="*", help="only these, such as tests/test_commands.py")
    args = parser.parse_args()
    if not shutil.which("redis-server"):
        sys.exit("error: no redis-server; next: apt-get install --no-install-recommends redis-server")
    tests = fetched(os.path.abspath(args.folder))
    known = differences()
    totals, surprises = collections.Counter(), []
    for file in args.file or files_of(tests):
        counted = results(tests, file, suite.redis_server)
        ours = results(tests, file, lambda port: suite.sapwood_serve(args.sapwood, port))
        told = collections.Counter()
        for name in [name for name, text in counted.items() if text is None]:
            text = ours.get(name, "not reached")
            lack = text and suite.LACKS.search(text)
            outcome = "passed" if text is None else "lacks" if lack else "differs"
            told[outcome] += 1
            if (outcome == "differs") != (name in known) and outcome != "lacks":
                surprises.append(f"{name}: {text or 'passes, and is listed in redis-py-differs.txt'}")
            if args.verbose and outcome != "passed":
                print(f"  {outcome}: {name}\n    " + text.strip().replace("\n", "\n    "))
        totals.update(told)
        print(f"{file}: {sum(told.values())} tests, " + figures_of(told), flush=True)
    print(f"all: {sum(totals.values())} tests, " + figures_of(totals))
    for surprise in surprises:
        print(f"unexpected: {surprise}")
    if not totals:
        sys.exit("error: no test was counted; next: run it with --verbose")
    sys.exit(1 if surprises else 0)


def figures_of(counts):
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in ["passed", "lacks", "differs"])


def differences():
    """Tests that are known to differ; reasons are comments above them."""
    with open(os.path.join(suite.HERE, "redis-py-differs.txt"), encoding="utf-8") as lines:
        return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def files_of(tests):
    paths = [f"tests/{folder}test_{name}.py" for folder in ["", "test_asyncio/"] for name in FILES]
    return [path for path in paths if os.path.exists(f"{tests}/{path}")]


def fetched(folder):
    """The folder of the source package, whose library the tests use."""
    with open(PINNED, encoding="utf-8") as file:
        wanted = next(line.strip() for line in file if line.startswith("redis=="))
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.check_call([*pip, "install", wanted, *TOOLS])
    tests = os.path.join(folder, wanted.replace("==", "-"))
    if not os.path.exists(f"{tests}/tests"):
        subprocess.check_call([*pip, "download", "--no-binary", "redis", "--no-deps", "--dest", folder, wanted])
        archive = glob.glob(f"{tests}*.tar.gz")
        if not archive:
            sys.exit(f"error: there is no source package of {wanted}")
        subprocess.check_call(["tar", "xf", archive[0]], cwd=folder)
    return tests


def results(tests, file, command):
    """Tests by name, and the text of those that failed."""
    port = suite.free_port()
    with tempfile.TemporaryDirectory(prefix="sapwood-redis-py-") as folder:
        with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
            server = subprocess.Popen(command(port), cwd=folder, stdout=log, stderr=log)
        try:
            suite.await_port(port, server)
            report = os.path.join(folder, "report.xml")
            run = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={TEST_SECONDS_MAX}",
                   f"--junitxml={report}", f"--redis-url=redis://127.0.0.1:{port}/9", "-m", "not redismod", file]
            try:
                done = subprocess.run(run, cwd=tests, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                                      timeout=SECONDS_MAX)
            except subprocess.TimeoutExpired:
                sys.exit(f"error: {file} does not end in {SECONDS_MAX} s")
            if not os.path.exists(report):
                sys.exit(f"error: {file} has no report:\n" + done.stdout.decode("utf-8", "replace")[-3000:])
            return parsed(report)
        finally:
            server.terminate()
            server.wait()


def parsed(report):
    found = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is not None:
            continue
        name = f"{case.get('classname')}.{case.get('name')}"
        texts = [it.get("message", "") + "\n" + last_lines(it.text or "") for it in case if it.tag in ("failure", "error")]
        found[name] = "\n".join(texts) if texts else None
    return found


def last_lines(text):
    return "\n".join(line for line in text.split("\n") if re.match(r"E  |.*Error", line))[-1500:]


if __name__ == "__main__":
    main()
