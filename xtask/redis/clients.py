#!/usr/bin/env python3
"""Clients of other makers against `sapwood serve`: redis-py, node-redis, go-redis, redis-cli and redis-benchmark.

`cargo xtask clients` builds the program and runs this. The programs stand in crates/server/tests/clients, with
the versions of the clients; what they need is installed into target/clients.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time

import suite

ROOT = os.path.dirname(os.path.dirname(suite.HERE))
PROGRAMS = os.path.join(ROOT, "crates/server/tests/clients")
SECONDS_MAX = 300


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sapwood", required=True, help="the program")
    parser.add_argument("--folder", default="target/clients", help="where clients are installed")
    parser.add_argument("client", nargs="*", help="only these: " + ", ".join(CLIENTS))
    args = parser.parse_args()
    folder = os.path.abspath(args.folder)
    chosen = args.client or list(CLIENTS)
    unknown = [name for name in chosen if name not in CLIENTS]
    if unknown:
        sys.exit(f"error: no client is called {unknown[0]}; next: one of {', '.join(CLIENTS)}")
    for name in chosen:
        for tool, package in CLIENTS[name][0]:
            if not shutil.which(tool):
                sys.exit(f"error: {name} needs {tool}; next: apt-get install --no-install-recommends {package}")
    failed = 0
    for name in chosen:
        begun = time.monotonic()
        port = suite.free_port()
        server = subprocess.Popen(
            [os.path.abspath(args.sapwood), "serve", "--port", str(port), "--save", ""],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            suite.await_port(port, server)
            CLIENTS[name][1](os.path.join(folder, name), port)
            if server.poll() is not None:
                raise AssertionError(f"the server has ended with {server.returncode}")
            outcome = "ok"
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            outcome = f"FAILED: {error}"
            failed += 1
        finally:
            server.terminate()
            server.wait()
        print(f"{name:16} {time.monotonic() - begun:6.1f} s  {outcome}", flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def run(*words, cwd=ROOT, stdin=b"", **env):
    words = [str(word) for word in words]
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **env}, timeout=SECONDS_MAX, check=False,
                          input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = done.stdout.decode("utf-8", "backslashreplace")
    if done.returncode:
        raise AssertionError(f"{' '.join(words)} ended with {done.returncode}:\n{text}")
    return text


def redis_py(folder, port):
    python = os.path.join(folder, "bin/python")
    if not os.path.exists(python):
        run(sys.executable, "-m", "venv", folder)
    run(python, "-m", "pip", "install", "--quiet", "-r", f"{PROGRAMS}/python/requirements.txt")
    print(run(python, f"{PROGRAMS}/python/client.py", port), end="")


def node_redis(folder, port):
    os.makedirs(folder, exist_ok=True)
    for file in ["package.json", "package-lock.json", "client.mjs"]:
        shutil.copy(f"{PROGRAMS}/node/{file}", folder)
    run("npm", "ci", "--no-audit", "--no-fund", cwd=folder)
    print(run("node", "client.mjs", port, cwd=folder), end="")


def go_redis(folder, port):
    os.makedirs(folder, exist_ok=True)
    program = os.path.join(folder, "client")
    run("go", "build", "-mod=readonly", "-o", program, ".", cwd=f"{PROGRAMS}/go", GOTOOLCHAIN="local", GOFLAGS="")
    print(run(program, port), end="")


def redis_cli(_, port):
    def answer(*words, stdin=b""):
        return run("redis-cli", "-p", port, *words, stdin=stdin)

    def expect(wanted, *words, stdin=b""):
        found = answer(*words, stdin=stdin)
        if found != wanted:
            raise AssertionError(f"redis-cli {' '.join(words)}: {wanted!r} expected, not {found!r}")

    def expect_part(wanted, *words, stdin=b""):
        found = answer(*words, stdin=stdin)
        if wanted not in found:
            raise AssertionError(f"redis-cli {' '.join(words)}: {wanted!r} expected in {found!r}")

    expect("PONG\n", "PING")
    expect("OK\n", "SET", "key", "value with spaces", "EX", "100")
    expect('"value with spaces"\n', "--no-raw", "GET", "key")
    expect("(nil)\n", "--no-raw", "GET", "none")
    expect("(integer) 41\n", "--no-raw", "INCRBY", "counter", "41")
    expect_part("server", "-3", "HELLO", "3")
    expect('["41",null]\n', "-3", "--json", "MGET", "counter", "none")
    expect('"41",NULL\n', "--csv", "MGET", "counter", "none")
    expect_part("(error) ERR unknown command 'NONSENSE'", "--no-raw", "NONSENSE")
    # Bytes of any kind, and commands of a pipe, one a line.
    expect("OK\n", "-x", "SET", "bytes", stdin=b"\0\xff\r\n")
    expect('"\\x00\\xff\\r\\n"\n', "--no-raw", "GET", "bytes")
    expect('OK\nQUEUED\nQUEUED\n1) (integer) 42\n2) "42"\nOK\n(nil)\n', "--no-raw",
           stdin=b"MULTI\nINCR counter\nGET counter\nEXEC\nSELECT 1\nGET counter\n")
    many = b"".join(b"SET many:%d %d EX 1000\r\n" % (number, number) for number in range(1000))
    expect_part("errors: 0, replies: 1000", "--pipe", stdin=many)
    walked = answer("--scan", "--pattern", "many:*").split()
    if sorted(walked) != sorted(f"many:{number}" for number in range(1000)):
        raise AssertionError(f"redis-cli --scan finds {len(walked)} keys of 1000")
    expect_part("Biggest string found", "--bigkeys")
    # A user with some rights on some keys.
    expect("OK\n", "ACL", "SETUSER", "reader", "on", ">secret", "+get", "~many:*")
    reader = ["--user", "reader", "--pass", "secret", "--no-auth-warning"]
    expect("7\n", *reader, "GET", "many:7")
    expect_part("NOPERM", *reader, "GET", "counter")
    expect("OK\n", "SW.CREATE", "visits", "ENGINE", "ORDERED")
    expect("OK\n", "SW.PUT", "visits", "a", "1")
    expect("1\n", "SW.GET", "visits", "a")
    print(answer("--version").strip())


def redis_benchmark(_, port):
    for words in [[], ["-P", "16"], ["-c", "1"], ["--threads", "2", "-P", "4"], ["-3"]]:
        text = run("redis-benchmark", "-p", port, "-n", "5000", "-r", "1000", "-q",
                   "-t", "ping,set,get,incr,mset", *words)
        if text.count("requests per second") < 5:
            raise AssertionError(f"redis-benchmark {' '.join(words)} gave:\n{text}")


# By name: the tools that each needs with Debian's packages of them, and what it does.
CLIENTS = {
    "redis-py": ([("python3", "python3-venv")], redis_py),
    "node-redis": ([("node", "nodejs"), ("npm", "npm")], node_redis),
    "go-redis": ([("go", "golang-go")], go_redis),
    "redis-cli": ([("redis-cli", "redis-tools")], redis_cli),
    "redis-benchmark": ([("redis-benchmark", "redis-tools")], redis_benchmark),
}


if __name__ == "__main__":
    main()
