// SPDX-License-Identifier: MIT
// Lists, inspections, watches and force, against servers that fail.
import assert from "node:assert/strict";
import test from "node:test";

import { Client, RequestRefused } from "redlockd-client";
import { idOf } from "../node_modules/redlockd-client/src/ops.js";
import { json, page, silent } from "./fake.mjs";
import {
  all, catchWarnings, endFakes, fake, rejection, sleep,
} from "./lib.mjs";

endFakes();
catchWarnings();

const lockFields = (name, more) =>
  ({ id: name, resource: name, held: true, version: "shared", waiters: 0, ...more });
const holder = (number, owner) => json(lockFields("a", {
  version: String(number), fencing_token: number, owner,
}));

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

test("a refusal that is not from redlockd says where it is from", async () => {
  for (const [kind, shown] of [["text/html", "text/html"], ["", "Content-Type"],
    [`a\tb${"c".repeat(99)}`, `a?b${"c".repeat(77)})`]]) {
    const server = await fake();
    const answer = page(403, '{"error":"no"}', { "Content-Type": kind });
    server.always("POST", answer).always("GET", answer);
    const client = new Client({ urls: server.url.replace("://", "://me:secret@") });
    for (const call of [() => client.acquire("a"), () => all(client.locks())]) {
      const { message } = await rejection(call(), RequestRefused);
      assert.ok(message.includes(`${server.url},`) && message.includes(shown), message);
    }
  }
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
