// node-redis against a server: node client.mjs PORT.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { commandOptions, createClient, WatchError } from "redis";

const url = `redis://127.0.0.1:${process.argv[2]}`;
const r = createClient({ url });
await r.connect();
await r.flushAll();

// Strings.
assert.equal(await r.set("a", "1"), "OK");
assert.equal(await r.get("a"), "1");
assert.equal(await r.set("a", "2", { NX: true }), null);
assert.equal(await r.set("a", "2", { XX: true, GET: true }), "1");
assert.equal(await r.incrBy("n", 42), 42);
assert.deepEqual(await r.mGet(["a", "none"]), ["2", null]);
const large = Buffer.alloc(2 << 20, 7);
await r.set("large", large);
assert.deepEqual(await r.get(commandOptions({ returnBuffers: true }), "large"), large);

// Bytes of any kind, as keys and as values.
const key = Buffer.from([0, 255, 13, 10, 36]);
const bytes = Buffer.from([...Array(256).keys()]);
await r.set(key, bytes);
assert.deepEqual(await r.get(commandOptions({ returnBuffers: true }), key), bytes);
assert.equal(await r.del(key), 1);

// Ends of time.
await r.set("t", "v", { EX: 100 });
assert.ok((await r.ttl("t")) > 98);
assert.equal(await r.persist("t"), true);

// Commands of one turn are a pipeline.
const numbers = [...Array(1000).keys()];
await Promise.all(numbers.map((n) => r.set(`p:${n}`, String(n))));
const values = await Promise.all(numbers.map((n) => r.get(`p:${n}`)));
assert.deepEqual(values, numbers.map(String));

// Transactions.
assert.deepEqual(await r.multi().set("m", "1").incr("m").get("m").exec(), ["OK", 2, "2"]);
await assert.rejects(
  r.executeIsolated(async (alone) => {
    await alone.watch("m");
    await r.incr("m");
    return alone.multi().get("m").exec();
  }),
  WatchError,
);

// Walks.
const found = new Set();
for await (const key of r.scanIterator({ MATCH: "p:*", COUNT: 50 })) found.add(key);
assert.equal(found.size, 1000);

// Messages.
const subscriber = r.duplicate();
await subscriber.connect();
const message = new Promise((resolve) => subscriber.subscribe("news", resolve));
while ((await r.publish("news", "hello")) === 0);
assert.equal(await message, "hello");
await subscriber.quit();

// Errors.
await r.set("text", "abc");
await assert.rejects(r.incr("text"), /^Error: ERR value is not an integer or out of range$/);
await assert.rejects(r.sendCommand(["NOSUCH"]), /unknown command/);

// A user with some rights on some keys.
await r.aclSetUser("reader", ["reset", "on", ">secret", "+get", "+set", "~own:*"]);
const reader = createClient({ url, username: "reader", password: "secret" });
await reader.connect();
assert.equal(await reader.set("own:a", "1"), "OK");
await assert.rejects(reader.get("other"), /NOPERM/);
await assert.rejects(reader.flushAll(), /NOPERM/);
await reader.disconnect();
assert.equal(await r.aclDelUser("reader"), 1);

// Tables and figures.
await r.sendCommand(["SW.CREATE", "seats", "ENGINE", "hash", "RECORD", "fixed8", "LAYOUT", "n:i64le"]);
for (const n of numbers.slice(0, 10)) {
  await r.sendCommand(["SW.ADD", "seats", String(n).padStart(8, "0"), String(n)]);
}
assert.match(JSON.stringify(await r.sendCommand(["SW.AGGREGATE", "seats", "SELECT", "sum(n)"])), /45/);
await r.sendCommand(["SW.DROP", "seats"]);
await r.quit();
const { version } = createRequire(import.meta.url)("redis/package.json");
console.log(`node-redis ${version}: strings, bytes, ends of time, pipelines, transactions, walks, messages, errors, users, tables`);
