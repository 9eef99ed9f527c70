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


def run(*words, cwd=ROOT, **env):
    words = [str(word) for word in words]
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **env}, timeout=SECONDS_MAX, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        raise AssertionError(f"{' '.join(words)} ended with {done.returncode}:\n{text}")
    return text


def redis_py(folder, port):
    python = os.path.join(folder, "bin/python")
    if not os.path.exists(python):
        run(sys.executable, "-m", "venv", folder)
    run(python, "-m", "pip", "install", "--quiet", "-r", f"{PROGRAMS}/python/requirements.txt")
    run(python, f"{PROGRAMS}/python/client.py", port)


def node_redis(folder, port):
    os.makedirs(folder, exist_ok=True)
    for file in ["package.json", "package-lock.json", "client.mjs"]:
        shutil.copy(f"{PROGRAMS}/node/{file}", folder)
    run("npm", "ci", "--no-audit", "--no-fund", cwd=folder)
    run("node", "client.mjs", port, cwd=folder)


def go_redis(folder, port):
    os.makedirs(folder, exist_ok=True)
    program = os.path.join(folder, "client")
    run("go", "build", "-mod=readonly", "-o", program, ".", cwd=f"{PROGRAMS}/go", GOTOOLCHAIN="local", GOFLAGS="")
    run(program, port)


def redis_cli(_, port):
    def answer(*words):
        return run("redis-cli", "-p", port, *words).strip()

    for words, wanted in [
        (["PING"], "PONG"),
        (["SET", "key", "value with spaces", "EX", "100"], "OK"),
        (["GET", "key"], "value with spaces"),
        (["-3", "HELLO", "3"], "server"),
        (["TTL", "key"], "100"),
        (["INCRBY", "counter", "41"], "41"),
        (["SW.CREATE", "visits", "ENGINE", "ORDERED"], "OK"),
        (["SW.PUT", "visits", "a", "1"], "OK"),
        (["SW.GET", "visits", "a"], "1"),
        (["--scan", "--pattern", "k*"], "key"),
        (["--bigkeys"], "Biggest string found"),
        (["NONSENSE"], "ERR unknown command 'NONSENSE'"),
    ]:
        found = answer(*words)
        lies = wanted in found or wanted == "100" and found == "99"
        if not lies:
            raise AssertionError(f"redis-cli {' '.join(words)}: {wanted!r} expected, not {found!r}")


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
