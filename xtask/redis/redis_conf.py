#!/usr/bin/env python3
"""`redis-server`, as Redis's suite starts it, by `sapwood serve`: a redis.conf becomes options.

The suite runs `src/redis-server CONFIG [OPTIONS]`, waits for lines of its log, and ends the process that it started; so
this process becomes the server, and a child of it writes the lines. A directive without an option here is written
into the file that SAPWOOD_LACKS names, and the server does not start: its tests count as those that need what is
absent.
"""

import os
import shlex
import socket
import sys
import time

# One directive, one option of the same name.
SAME = set("""port bind requirepass maxclients timeout client-query-buffer-limit tcp-keepalive databases maxmemory
    slowlog-log-slower-than slowlog-max-len latency-monitor-threshold enable-debug-command protected-mode
    unixsocketperm appendfsync""".split())
# Of what these are about there is nothing here, or no test asks.
IGNORED = set("""always-show-logo notify-keyspace-events daemonize pidfile loglevel logfile repl-diskless-sync-delay
    repl-diskless-sync save rdbcompression rdbchecksum dbfilename dir slave-serve-stale-data
    no-appendfsync-on-rewrite activerehashing enable-protected-configs enable-module-command
    propagation-error-behavior user aclfile unixsocket client-output-buffer-limit lazyfree-lazy-user-del
    lazyfree-lazy-user-flush acllog-max-len auto-aof-rewrite-percentage""".split())
# Those that say what is here anyway.
FIXED = {"appendonly": ["no"], "acl-pubsub-default": ["resetchannels"], "maxmemory-policy": ["noeviction"],
         "masterauth": None, "io-threads": None, "proc-title-template": None, "set-proc-title": None}
SECONDS_MAX = 20


def main():
    directives, positional = [], []
    words = sys.argv[1:]
    if words and not words[0].startswith("--"):
        with open(words[0], encoding="utf-8", errors="surrogateescape") as file:
            directives += [parsed(line) for line in file if line.strip() and not line.startswith("#")]
        positional = words[1:]
    else:
        positional = words
    directives += given(positional)
    # The suite waits for this line and the next, minutes if need be.
    print(f"{os.environ['SAPWOOD']} PID: {os.getpid()}", flush=True)
    options, lacks = options_of(directives)
    if lacks:
        with open(os.environ["SAPWOOD_LACKS"], "a", encoding="utf-8") as file:
            file.write("".join(f"{word}\n" for word in lacks))
        sys.exit(f"error: no option of `sapwood serve` for {', '.join(lacks)}")
    port = int(dict(directives_one(directives)).get("port", "6379"))
    if os.fork() == 0:
        announce(port)
    os.execv(os.environ["SAPWOOD"], [os.environ["SAPWOOD"], "serve", *options])


def announce(port):
    """Says that the server is ready, as soon as it is."""
    limit, parent = time.monotonic() + SECONDS_MAX, os.getppid()
    while time.monotonic() < limit and os.getppid() == parent:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                print("Ready to accept connections", flush=True)
                break
        time.sleep(0.02)
    os._exit(0)


def parsed(line):
    words = shlex.split(line.strip(), posix=True) if '"' in line or "'" in line else line.split()
    return words[0].lower(), words[1:]


def given(words):
    """Directives of the command line: `--name value value`, or all of one in a word."""
    found = []
    for word in words:
        if word.startswith("--"):
            found.append(parsed(word[2:]))
        elif found:
            found[-1][1].extend(word.split())
    return found


def directives_one(directives):
    """Of each directive the last value."""
    return [(name, " ".join(values)) for name, values in directives]


def options_of(directives):
    options, lacks = [], []
    last = dict(directives_one(directives))
    folder = last.get("dir", ".")
    # Nothing is kept between servers, as where the suite does not start them.
    options += ["--save", ""]
    limits = []
    for name, values in directives:
        value = " ".join(values)
        if name in SAME:
            if last[name] == value:
                options.append(f"--{name}={value}")
        elif name in FIXED:
            if FIXED[name] is not None and values != FIXED[name]:
                lacks.append(f"{name} {value}")
        elif name not in IGNORED:
            lacks.append(f"{name} {value}")
        if name == "client-output-buffer-limit":
            limits.append(value)
    if limits:
        options.append("--client-output-buffer-limit=" + " ".join(limits))
    if last.get("unixsocket") and len(last["unixsocket"]) < 100:
        options.append(f"--unixsocket={last['unixsocket']}")
    users = [values for name, values in directives if name == "user"]
    if users:
        path = os.path.join(folder, "users-of-config.acl")
        with open(path, "w", encoding="utf-8") as file:
            # One word in quotes is all of a user.
            file.write("".join("user " + " ".join(values) + "\n" for values in users))
        options.append(f"--aclfile={path}")
    elif last.get("aclfile"):
        options.append("--aclfile=" + os.path.join(folder, last["aclfile"]))
    return options, lacks


if __name__ == "__main__":
    main()
