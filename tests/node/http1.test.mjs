// SPDX-License-Identifier: MIT
// Answers as bytes, whole and in pieces: what is read, and what is refused.
import assert from "node:assert/strict";
import test from "node:test";

import { BadAnswer, Reader } from "../node_modules/redlockd-client/src/http1.js";

const HEAD = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`;

/** Reads a text in pieces of this many bytes; what came of it. */
function read(text, size = text.length) {
  const bytes = Buffer.from(text, "latin1");
  const reader = new Reader();
  for (let at = 0; at < bytes.length; at += size)
    if (reader.take(bytes.subarray(at, at + size)) && at + size < bytes.length)
      return { ...reader.answer, isLast: true };
  return reader.end();
}

/** The same, however the network cuts it. */
function readAny(text) {
  const whole = read(text);
  for (const size of [1, 2, 3, 7, 64]) assert.deepEqual(read(text, size), whole, size);
  return whole;
}

const GOOD = {
  "with a length": [`${HEAD}Content-Length: 5\r\n\r\nhello`, "hello"],
  "with two lengths that are one field": [
    `${HEAD}content-length:5\t\r\nX:\r\n\r\nhello`, "hello"],
  "empty": [`${HEAD}Content-Length: 0\r\n\r\n`, ""],
  "without content": ["HTTP/1.1 204 No Content\r\n\r\n", ""],
  "without a reason": ["HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", "x"],
  "in chunks": [`${CHUNKED}5\r\nhello\r\n6;a="b"\r\n world\r\n0\r\n\r\n`,
    "hello world"],
  "in chunks, with a trailer": [`${CHUNKED}A\r\n0123456789\r\n00\r\nX: y\r\n\r\n`,
    "0123456789"],
  "after 100 and 103": [`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n` +
    `Link: x\r\n\r\n${HEAD}Content-Length: 2\r\n\r\nok`, "ok"],
  "of UTF-8": [`${HEAD}Content-Length: 2\r\n\r\n\xc3\xbc`, "ü"],
};

for (const [what, [text, body]] of Object.entries(GOOD))
  test(`an answer ${what}`, () => {
    const answer = readAny(text);
    assert.deepEqual([answer.text, answer.isLast], [body, false]);
  });

test("the connection ends with it", () => {
  for (const text of [
    `${HEAD}\r\nhello`, `${HEAD}Connection: close\r\nContent-Length: 5\r\n\r\nhello`,
    `${HEAD}Connection: x, Close\r\nContent-Length: 5\r\n\r\nhello`,
    "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    `${HEAD}Content-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n`]) {
    const answer = readAny(text);
    assert.deepEqual([answer.text, answer.isLast], ["hello", true], text);
  }
});

test("what else is told", () => {
  const answer = readAny("HTTP/1.1 429 Too Many\r\nRetry-After: 3\r\n" +
    "Keep-Alive: max=5, timeout=7\r\nContent-Length: 0\r\n\r\n");
  assert.deepEqual([answer.status, answer.retryAfter, answer.idleMs],
    [429, "3", 7000]);
});

test("cut short, there is no answer", () => {
  for (const [text] of Object.values(GOOD))
    for (let length = 1; length < text.length; length++)
      assert.equal(read(text.slice(0, length)), undefined, text.slice(0, length));
});

const BAD = {
  "another protocol": "SSH-2.0-OpenSSH_9.2\r\n\r\n",
  "another version": "HTTP/2.0 200 OK\r\n\r\n",
  "no status": "HTTP/1.1 OK\r\n\r\n",
  "a status of two digits": "HTTP/1.1 20 OK\r\n\r\n",
  "an upgrade": "HTTP/1.1 101 Switching Protocols\r\n\r\n",
  "a space before the colon": `${HEAD}Content-Length : 1\r\n\r\nx`,
  "a folded line": `${HEAD}X: y\r\n z\r\n\r\n`,
  "a line without a colon": `${HEAD}X\r\n\r\n`,
  "a bare line feed": `${HEAD}X: y\nContent-Length: 1\r\n\r\nx`,
  "a NUL": `${HEAD}X: \0\r\n\r\n`,
  "a length and a coding":
    `${HEAD}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
  "two lengths": `${HEAD}Content-Length: 1\r\nContent-Length: 1\r\n\r\nx`,
  "a length below 0": `${HEAD}Content-Length: -1\r\n\r\nx`,
  "a length with a sign": `${HEAD}Content-Length: +1\r\n\r\nx`,
  "a length that is no number": `${HEAD}Content-Length: 0x1\r\n\r\nx`,
  "an answer that is too long": `${HEAD}Content-Length: 99999999999\r\n\r\nx`,
  "an unknown coding": `${HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n`,
  "a chunk without a size": `${CHUNKED}\r\n`,
  "a chunk below 0": `${CHUNKED}-1\r\n`,
  "a chunk that is too long": `${CHUNKED}ffffffff\r\n`,
  "a chunk that is longer than its size": `${CHUNKED}1\r\nxy\r\n0\r\n\r\n`,
  "a trailer that is none": `${CHUNKED}0\r\nX\r\n\r\n`,
  "a head without an end": `${HEAD}${"X: y\r\n".repeat(3000)}`,
  "a chunk's line without an end": `${CHUNKED}1;${"x".repeat(2000)}`,
};

for (const [what, text] of Object.entries(BAD))
  test(`refused: ${what}`, () => {
    for (const size of [1, 7, text.length])
      assert.throws(() => read(text, size), BadAnswer, String(size));
  });

test("a body in chunks may be long, and its sum has a limit", () => {
  const reader = new Reader();
  reader.take(Buffer.from(CHUNKED));
  const chunk = Buffer.from(`100000\r\n${"x".repeat(1 << 20)}\r\n`);
  for (let i = 0; i < 64; i++) reader.take(chunk);
  assert.throws(() => reader.take(chunk), /too long/);
});
