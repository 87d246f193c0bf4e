// SPDX-License-Identifier: MIT
// Real reverse proxies in front of servers: HAProxy and nginx, of Debian.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { Client, Unavailable } from "redlockd-client";
import { late, usual } from "./fake.mjs";
import {
  catchWarnings, endFakes, eventually, fake, rejection, sleep, warnings,
} from "./lib.mjs";

endFakes();
catchWarnings();

const haproxy = (from, to, more) => `
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  ${more}
frontend clients
  bind 127.0.0.1:${from}
  default_backend servers
backend servers
  server one ${to}
`;

const nginx = (from, to, more) => `
daemon off;
pid nginx.pid;
error_log stderr crit;
events {}
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxied;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  ${more}
  server {
    listen 127.0.0.1:${from};
    location / {
      proxy_pass http://${to};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
}
`;

async function freePort() {
  const server = net.createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

function isOpen(port) {
  return new Promise((done) => {
    const socket = net.connect(port, "127.0.0.1", () => {
      socket.destroy();
      done(true);
    });
    socket.on("error", () => done(false));
  });
}

/** Starts one in front of a server; its URL. */
async function proxied(t, kind, server, more = "") {
  const folder = mkdtempSync(join(tmpdir(), "proxy."));
  mkdirSync(join(folder, "logs"));
  const port = await freePort();
  const config = join(folder, "config");
  const text = kind === "haproxy" ? haproxy : nginx;
  writeFileSync(config, text(port, new URL(server.url).host, more));
  const [command, ...words] = kind === "haproxy"
    ? ["/usr/sbin/haproxy", "-db", "-f", config]
    : ["/usr/sbin/nginx", "-p", folder, "-e", "stderr", "-c", config];
  const child = spawn(command, words, { stdio: "ignore" });
  const ended = new Promise((done) => child.on("close", done));
  t.after(async () => {
    child.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true });
  });
  await eventually(() => isOpen(port), `${kind} listens`);
  return `http://127.0.0.1:${port}`;
}

for (const kind of ["haproxy", "nginx"]) {
  test(`${kind}: many cycles over kept connections`, async (t) => {
    const server = await fake();
    const client = new Client({ urls: await proxied(t, kind, server) });
    await Promise.all(Array.from({ length: 8 }, async () => {
      for (let i = 0; i < 20; i++) await client.withLock("a", () => {});
    }));
    assert.equal(server.of("DELETE").length, 160);
    assert.deepEqual(warnings, []);
    await client.close();
  });

  test(`${kind}: it closes idle connections early`, async (t) => {
    const server = await fake();
    const more = kind === "haproxy" ? "timeout http-keep-alive 50ms"
      : "keepalive_timeout 50ms;";
    const client = new Client({ urls: await proxied(t, kind, server, more) });
    for (let i = 0; i < 30; i++) {
      await client.withLock("a", { waitMs: 0 }, () => {});
      await sleep(40 + i); // now and then as it closes
    }
    assert.deepEqual(warnings, []);
    await client.close();
  });

  test(`${kind}: it cuts waits, and has no server`, async (t) => {
    const server = await fake();
    const more = kind === "haproxy" ? "timeout server 300ms"
      : "proxy_read_timeout 300ms;";
    const urls = await proxied(t, kind, server, more);
    const client = new Client({ urls });
    server.on("POST", late(1000, usual)); // a 504, and then the same again
    await client.withLock("a", { waitMs: 5000 }, () => {});
    assert.equal(server.of("POST").length, 2);
    server.close();
    const error = await rejection(client.acquire("a", { waitMs: 0 }), Unavailable);
    assert.match(error.message, /50[234]/);
    await client.close();
  });
}
