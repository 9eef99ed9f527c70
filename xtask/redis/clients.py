#!/usr/bin/env python3
"""Clients of Redis against `sapwood serve`, each over a socket as its users have it.

`cargo xtask clients` builds the program and runs this. The programs of crates/server/tests/clients run with
their libraries, whose versions are pinned beside them, and Debian's redis-cli and redis-benchmark. What they
need is fetched into target/clients. Each checks what it gets; one that fails ends this with an error.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "../../crates/server/tests/clients")
# What each tool is for apt-get.
TOOLS = {
    "redis-cli": "redis-tools", "redis-benchmark": "redis-tools", "node": "nodejs", "npm": "npm", "go": "golang-go",
}
# A client that waits for a reply that does not come would wait for ever.
CLIENT_SECONDS_MAX = 120
FETCH_SECONDS_MAX = 300
SERVER_SECONDS_MAX = 30


class Failed(Exception):
    """What a client did not get, or what it printed."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sapwood", required=True, help="the program")
    parser.add_argument("--folder", default="target/clients", help="where libraries are fetched to")
    clients = {
        "redis-py": redis_py, "node-redis": node_redis, "go-redis": go_redis,
        "redis-cli": redis_cli, "redis-benchmark": redis_benchmark,
    }
    parser.add_argument("client", nargs="*", help="only these: " + " ".join(clients))
    args = parser.parse_args()
    unknown = [name for name in args.client if name not in clients]
    if unknown:
        sys.exit(f"error: no client is called {unknown[0]}; next: one of " + " ".join(clients))
    require_tools()
    folder = os.path.abspath(args.folder)
    os.makedirs(folder, exist_ok=True)
    failed = []
    for name in args.client or clients:
        begin = time.monotonic()
        try:
            # A server of its own for each: what one leaves behind changes nothing for the next.
            with Server(os.path.abspath(args.sapwood)) as port:
                clients[name](folder, port)
            verdict = "ok"
        except (Failed, subprocess.SubprocessError) as error:
            print(error, flush=True)
            failed.append(name)
            verdict = "FAILED"
        print(f"{name}: {verdict}, {time.monotonic() - begin:.1f} s", flush=True)
    if failed:
        sys.exit("error: failed: " + " ".join(failed))


def require_tools():
    missing = {package for tool, package in TOOLS.items() if not shutil.which(tool)}
    venv = subprocess.run([sys.executable, "-c", "import ensurepip, venv"], stderr=subprocess.DEVNULL, check=False)
    if venv.returncode:
        missing.add("python3-venv")
    if missing:
        packages = " ".join(sorted(missing))
        sys.exit(f"error: tools are missing; next: apt-get install --no-install-recommends {packages}")


class Server:
    """A server at a port that the system chooses, with nothing in it."""

    def __init__(self, sapwood):
        self.sapwood = sapwood

    def __enter__(self):
        self.files = tempfile.TemporaryDirectory(prefix="sapwood-clients-")
        log = os.path.join(self.files.name, "log")
        with open(log, "w", encoding="utf-8") as output:
            command = [self.sapwood, "serve", "--port", "0", "--save", ""]
            self.process = subprocess.Popen(command, cwd=self.files.name, stdout=output, stderr=output)
        begin = time.monotonic()
        while self.process.poll() is None and time.monotonic() - begin < SERVER_SECONDS_MAX:
            with open(log, encoding="utf-8") as lines:
                ready = re.search(r"ready to accept connections.*:(\d+)\s", lines.read())
            if ready:
                return int(ready.group(1))
            time.sleep(0.02)
        with open(log, encoding="utf-8") as lines:
            said = lines.read()
        self.__exit__()
        raise Failed(f"the server does not get ready:\n{said}")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            code = self.process.wait(SERVER_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.files.cleanup()
        if code and sys.exc_info()[0] is None:
            raise Failed(f"the server has ended with {code}")


def run(command, cwd=None, stdin=b"", seconds=CLIENT_SECONDS_MAX, env=None):
    """What a command printed; what it printed is the reason, where it failed."""
    env = {**os.environ, **(env or {})}
    # Bytes that clients get are not text.
    done = subprocess.run(command, cwd=cwd, input=stdin, env=env, timeout=seconds, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = done.stdout.decode("utf-8", "backslashreplace")
    if done.returncode:
        raise Failed(f"{' '.join(command)} ended with {done.returncode}:\n{output}")
    return output


def expect(got, wanted, what):
    if got != wanted:
        raise Failed(f"{what}: got {got!r}, not {wanted!r}")


def redis_py(folder, port):
    venv = os.path.join(folder, "python")
    python = os.path.join(venv, "bin/python")
    if not os.path.exists(python):
        run([sys.executable, "-m", "venv", venv], seconds=FETCH_SECONDS_MAX)
    pinned = os.path.join(PROGRAMS, "python/requirements.txt")
    run([python, "-m", "pip", "install", "--quiet", "-r", pinned], seconds=FETCH_SECONDS_MAX)
    print(run([python, os.path.join(PROGRAMS, "python/client.py"), str(port)]), end="")


def node_redis(folder, port):
    # A copy: npm writes beside the list of packages, and sources stay as they are.
    copy = os.path.join(folder, "node")
    os.makedirs(copy, exist_ok=True)
    for name in ["package.json", "package-lock.json", "client.mjs"]:
        shutil.copy(os.path.join(PROGRAMS, "node", name), copy)
    run(["npm", "ci", "--no-audit", "--no-fund"], cwd=copy, seconds=FETCH_SECONDS_MAX)
    print(run(["node", "client.mjs", str(port)], cwd=copy), end="")


def go_redis(folder, port):
    program = os.path.join(folder, "go-client")
    build = ["go", "build", "-o", program, "."]
    env = {"GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0"}
    run(build, cwd=os.path.join(PROGRAMS, "go"), seconds=FETCH_SECONDS_MAX, env=env)
    print(run([program, str(port)]), end="")


def redis_cli(_, port):
    def cli(*words, stdin=b""):
        return run(["redis-cli", "-p", str(port), *words], stdin=stdin)

    expect(cli("set", "a", "1"), "OK\n", "SET")
    expect(cli("--no-raw", "get", "a"), '"1"\n', "GET as for people")
    expect(cli("--no-raw", "get", "none"), "(nil)\n", "GET of no value")
    expect(cli("--no-raw", "incr", "a"), "(integer) 2\n", "INCR")
    expect(cli("-3", "--json", "mget", "a", "none"), '["2",null]\n', "MGET as JSON")
    expect(cli("--csv", "mget", "a", "none"), '"2",NULL\n', "MGET as CSV")
    expect(cli("-x", "set", "bytes", stdin=b"\0\xff\r\n"), "OK\n", "SET of bytes")
    expect(cli("--no-raw", "get", "bytes"), '"\\x00\\xff\\r\\n"\n', "GET of bytes")
    expect(cli("--no-raw", "nosuch").startswith("(error) ERR unknown command 'nosuch'"), True, "an error")
    # A transaction, and words from a pipe, one command a line.
    lines = b"multi\nincr a\nget a\nexec\nselect 1\nget a\n"
    expect(cli("--no-raw", stdin=lines),
           'OK\nQUEUED\nQUEUED\n1) (integer) 3\n2) "3"\nOK\n(nil)\n', "a transaction")
    many = b"".join(b"SET key:%d %d EX 1000\r\n" % (number, number) for number in range(1000))
    expect("errors: 0, replies: 1000" in cli("--pipe", stdin=many), True, "--pipe")
    walked = cli("--scan", "--pattern", "key:*").split()
    expect(sorted(walked), sorted(f"key:{number}" for number in range(1000)), "--scan")
    expect("Biggest string" in cli("--bigkeys"), True, "--bigkeys")
    expect(cli("acl", "setuser", "reader", "on", ">secret", "+get", "~key:*"), "OK\n", "ACL SETUSER")
    reader = ["--user", "reader", "--pass", "secret", "--no-auth-warning"]
    expect(cli(*reader, "get", "key:7"), "7\n", "GET of a user")
    expect(cli(*reader, "get", "a").startswith("NOPERM"), True, "a key that is not the user's")
    table = ["sw.create", "t", "engine", "ordered", "layout", "n:i64le"]
    expect(cli(*table), "OK\n", "SW.CREATE")
    expect(cli("--no-raw", "sw.add", "t", "k", "7"), "(integer) 7\n", "SW.ADD")
    print(f"{run(['redis-cli', '--version']).strip()}: replies as text, JSON and CSV, bytes, errors, "
          "transactions, --pipe, --scan, --bigkeys, users, tables")


def redis_benchmark(_, port):
    tests = "ping_inline,ping_mbulk,set,get,incr,mset"
    sizes = ["-n", "5000", "-c", "20", "-r", "1000", "-d", "64"]
    for more in [["-P", "1"], ["-P", "16"], ["-P", "16", "--threads", "2"], ["-3", "-P", "1"]]:
        output = run(["redis-benchmark", "-p", str(port), "-q", "-t", tests, *sizes, *more])
        rates = re.findall(r"(\w+)[^:\r\n]*: ([0-9.]+) requests per second", output)
        expect([name for name, _ in rates], ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET"], output)
        expect([rate for _, rate in rates if float(rate) == 0], [], output)
    print(f"{run(['redis-benchmark', '--version']).strip()}: {tests}, with pipelines, threads and RESP3")


if __name__ == "__main__":
    main()
