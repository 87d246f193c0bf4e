// Lists, inspections, watches and force, against servers that fail.
import assert from "node:assert/strict";
import test from "node:test";

import { Client, RequestRefused } from "redlockd-client";
import { idOf } from "../node_modules/redlockd-client/src/ops.js";
import { cut, json, page, problem, silent, usual } from "./fake.mjs";
import {
  catchWarnings, endFakes, eventually, fake, rejection, sleep,
} from "./lib.mjs";

endFakes();
catchWarnings();

const lockFields = (name, more) =>
  ({ id: name, resource: name, held: true, version: "shared", waiters: 0, ...more });
const holder = (number, owner) => json(lockFields("a", {
  version: String(number), fencing_token: number, owner,
}));
const free = json(lockFields("a", { held: false, version: "free" }));

async function all(iterable) {
  const found = [];
  for await (const one of iterable) found.push(one);
  return found;
}

test("pages are followed", async () => {
  const server = await fake();
  server.on("GET",
    json({ locks: [lockFields("a", { version: "7", owner: "me", fencing_token: 7,
      remaining_ms: 1500 }), lockFields("b")], next_cursor: "x&y" }),
    json({ locks: [], next_cursor: "z" }),
    json({ locks: [lockFields("b"), lockFields("c", { readers: 2, slots: [3, 7] })] }));
  const client = new Client({ urls: server.url });
  const [first, second, third, ...rest] = await all(
    client.locks({ prefix: "a&b/ü +" }));
  assert.deepEqual(first, { id: "a", resources: ["a"], slots: [], owner: "me",
    fencingToken: 7, remainingMs: 1500, waiters: 0, readers: 0, version: "7" });
  assert.deepEqual([second.id, second.owner, second.remainingMs],
    ["b", undefined, undefined]);
  assert.deepEqual([third.id, third.readers, third.slots, rest],
    ["c", 2, [3, 7], []]);
  assert.equal(server.requests[0].path,
    "/locks?page_size=1000&prefix=a%26b%2F%C3%BC%20%2B");
  assert.match(server.requests[1].path, /&cursor=x%26y$/);
});

test("force", async () => {
  for (const [action, told] of [[usual, true], [problem(409, "not_owner"), false],
    [problem(404, "lock_not_found"), false]]) {
    const server = await fake();
    server.always("DELETE", action);
    const client = new Client({ urls: server.url });
    assert.equal(await client.forceRelease("~YS9i", 7), told);
    assert.equal(await client.forceRelease("b", "all"), told);
    assert.deepEqual(server.requests.map((one) => one.path),
      ["/locks/~YS9i?force=7", "/locks/b?force=all"]);
  }
});

test("who holds a lock", async () => {
  const server = await fake();
  server.on("GET", holder(7, "me"), free,
    problem(404, "not_found"), json(lockFields("~~YQpi", { resources: ["a", "b"] })));
  const client = new Client({ urls: server.url });
  assert.equal((await client.get("a/b")).owner, "me");
  assert.equal(await client.get("a"), null);
  await rejection(client.get("a"), RequestRefused); // something else is there
  assert.deepEqual((await client.get(["b", "a"])).resources, ["a", "b"]);
  assert.deepEqual(server.requests.map((one) => one.path),
    ["/locks/~YS9i", "/locks/a", "/locks/a", "/locks/~~YQpi"]);
});

test("wrong requests are told", async () => {
  const server = await fake();
  const wrong = problem(400, "invalid_request");
  server.on("GET", wrong, wrong).on("DELETE", wrong);
  const client = new Client({ urls: server.url });
  await rejection(all(client.locks()), RequestRefused);
  await rejection(all(client.watch("a")), RequestRefused);
  await rejection(client.forceRelease("a", -1), RequestRefused);
  assert.throws(() => client.get([]), TypeError);
});

test("a refusal that is not from redlockd says where it is from", async () => {
  for (const status of [302, 403, 404, 409]) {
    for (const [kind, shown] of [["text/html", "text/html"], ["", "no Content-Type"],
      [`a\tb${"c".repeat(99)}`, `a?b${"c".repeat(77)}`]]) {
      const server = await fake();
      const answer = page(status, '{"error":"no"}', { "Content-Type": kind });
      server.always("POST", answer).always("GET", answer).always("DELETE", answer);
      const client = new Client({
        urls: server.url.replace("://", "://me:password@") });
      const text = `${status} from ${server.url}, not from redlockd (${shown})`;
      for (const [what, call] of [["a", () => client.acquire("a")],
        ["a", () => client.get("a")], ["the list", () => all(client.locks())],
        ["a", () => client.forceRelease("a", 7)]]) {
        const { message } = await rejection(call(), RequestRefused);
        assert.ok(message.endsWith(`: ${text}`), message);
        assert.ok(status === 403 || message === `${what}: ${text}`, message);
      }
    }
  }
});

test("a watch yields each new holder, and null", async () => {
  const [one, two] = [await fake(), await fake()];
  one.always("GET", silent, free, holder(7, "me"),
    holder(7, "me"), cut, cut);
  two.always("GET", silent, holder(9, "you"), free);
  const client = new Client({ urls: [one.url, two.url] });
  const controller = new AbortController();
  const seen = [];
  const error = await rejection((async () => {
    for await (const now of client.watch("a", { signal: controller.signal })) {
      seen.push(now && now.owner);
      if (seen.length === 4)
        eventually(() => two.of("GET").length === 3, "the last question")
          .then(() => controller.abort());
    }
  })(), Error);
  assert.equal(error.name, "AbortError");
  assert.deepEqual(seen, [null, "me", "you", null]);
  const paths = [...one.of("GET"), ...two.of("GET")].map((got) =>
    got.path.replace("&wait_ms=10000", ""));
  assert.deepEqual(paths, ["/locks/a", "/locks/a?after=free", "/locks/a?after=7",
    "/locks/a?after=7", "/locks/a?after=7", "/locks/a", "/locks/a?after=9",
    "/locks/a?after=free"]);
  await eventually(() => two.left.length === 1, "the connection is closed");
});

test("leaving the loop ends a watch", async () => {
  const server = await fake();
  server.always("GET", silent, holder(7, "me"));
  for await (const now of new Client({ urls: server.url }).watch("a")) {
    assert.equal(now.owner, "me");
    break;
  }
  await sleep(50);
  assert.equal(server.requests.length, 1);
});

test("ids are those of the server", () => {
  const rows = [["order:42", "order:42"], ["a/b", "~YS9i"], ["..", "~Li4"],
    [["stock:7", "order:9"], "~~b3JkZXI6OQpzdG9jazo3"], [["a"], "a"],
    ["ü", "~w7w"], ["~a", "~fmE"]];
  for (const [resources, id] of rows) assert.equal(idOf(resources), id);
});
