"""redis-py against a server: python client.py PORT."""

import sys
import time

import redis

port = int(sys.argv[1])
for protocol in (2, 3):
    r = redis.Redis(port=port, protocol=protocol, decode_responses=True)
    r.flushall()

    # Strings, and what they become.
    assert r.set("a", "1") is True
    assert r.get("a") == "1" and r.get("none") is None
    assert r.set("a", "2", nx=True) is None and r.set("a", "2", xx=True, get=True) == "1"
    assert r.incr("n") == 1 and r.incrby("n", 41) == 42 and r.incrbyfloat("f", 0.5) == 0.5
    assert r.append("a", "34") == 3 and r.getrange("a", 1, 2) == "34" and r.strlen("a") == 3
    assert r.mset({"x": "1", "y": "2"}) and r.mget("x", "none", "y") == ["1", None, "2"]
    assert r.getdel("x") == "1" and not r.exists("x") and r.type("y") == "string"
    assert r.rename("y", "z") and r.copy("z", "y") and r.delete("y", "z", "x") == 2
    large = "v" * (3 << 20)
    assert r.set("large", large) and r.get("large") == large

    # Ends of time.
    r.set("t", "v", ex=100)
    assert 99 <= r.ttl("t") <= 100 and r.persist("t") and r.ttl("t") == -1
    r.set("t", "v", px=20)
    while r.get("t") is not None:
        time.sleep(0.005)

    # Pipelines and transactions.
    with r.pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.set(f"p:{number}", number).get(f"p:{number}")
        replies = pipe.execute()
    assert replies == [it for number in range(1000) for it in (True, str(number))]

    def move(pipe):
        value = int(pipe.get("n"))
        pipe.multi()
        pipe.set("n", value + 1)

    for _ in range(10):
        r.transaction(move, "n")
    assert r.get("n") == "52"
    with r.pipeline() as pipe:
        pipe.watch("n")
        r.incr("n")
        pipe.multi()
        pipe.get("n")
        try:
            pipe.execute()
            raise AssertionError("a changed key breaks the transaction")
        except redis.WatchError:
            pass

    # Walks.
    assert len(set(r.scan_iter("p:*", count=50))) == 1000 and len(r.keys("p:1??")) == 100
    assert r.randomkey() is not None and r.dbsize() >= 1000

    # Messages, by name and by pattern; both subscriptions are there before the first one.
    with r.pubsub() as messages:
        messages.subscribe("news")
        messages.psubscribe("n*")
        confirmed = [messages.get_message(timeout=5)["type"] for _ in range(2)]
        assert confirmed == ["subscribe", "psubscribe"]
        assert r.publish("news", "hello") == 2
        received = [messages.get_message(timeout=5) for _ in range(2)]
        assert {(it["type"], it["data"]) for it in received} == {("message", "hello"), ("pmessage", "hello")}

    # The server itself.
    assert r.info()["redis_version"] and r.ping() and r.echo("e") == "e"
    assert r.client_setname("py") and r.client_getname() == "py"
    assert r.client_info()["resp"] == str(protocol)
    assert r.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    try:
        r.execute_command("NOSUCH")
        raise AssertionError("an unknown command is an error")
    except redis.ResponseError as error:
        assert "unknown command" in str(error)
    try:
        r.set("text", "abc") and r.incr("text")
        raise AssertionError("a text is no number")
    except redis.ResponseError as error:
        assert str(error) == "value is not an integer or out of range"

    # Bytes of any kind, as keys and as values.
    raw = redis.Redis(port=port, protocol=protocol)
    key, value = b"\0\xff\r\n$", bytes(range(256)) * 5
    assert raw.set(key, value) and raw.get(key) == value and raw.strlen(key) == len(value)
    assert raw.mget(key, b"") == [value, None] and raw.delete(key) == 1
    raw.close()

    # A user with some rights on some keys.
    rights = {"commands": ["+get", "+set", "+ping"], "keys": ["own:*"], "passwords": ["+secret"]}
    assert r.acl_setuser("reader", enabled=True, reset=True, **rights) and "reader" in r.acl_users()
    reader = redis.Redis(port=port, protocol=protocol, username="reader", password="secret")
    assert reader.set("own:a", "1") and reader.get("own:a") == b"1"
    for refused in [("GET", "other"), ("FLUSHALL",)]:
        try:
            reader.execute_command(*refused)
            raise AssertionError(f"{refused} is beyond the rights of the user")
        except redis.exceptions.NoPermissionError:
            pass
    reader.close()
    try:
        redis.Redis(port=port, protocol=protocol, username="reader", password="wrong").ping()
        raise AssertionError("a wrong password lets a client in")
    except redis.exceptions.AuthenticationError:
        pass
    assert r.acl_deluser("reader") == 1

    # Tables and figures.
    r.execute_command("SW.CREATE", "orders", "ENGINE", "ordered", "LAYOUT", "amount:i64le")
    for number in range(100):
        r.execute_command("SW.PUT", "orders", f"o{number:03}", number.to_bytes(8, "little"))
    assert "4950" in str(r.execute_command("SW.AGGREGATE", "orders", "SELECT", "sum(amount)"))
    r.execute_command("SW.DROP", "orders")
    r.close()
    print(f"redis-py {redis.__version__}, RESP{protocol}: strings, bytes, ends of time, pipelines, transactions, "
          "walks, messages, errors, users, tables")
