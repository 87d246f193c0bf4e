// SPDX-License-Identifier: MIT
// The package as it is installed, and its types.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";

import * as redlockd from "redlockd-client";
import { CLIENT_OPTIONS } from "../node_modules/redlockd-client/src/client.js";
import { ACQUIRE_OPTIONS } from "../node_modules/redlockd-client/src/wish.js";

const ROOT = process.env.ROOT; // of the project
const SOURCE = join(ROOT, "api/clients/node");
const HERE = fileURLToPath(new URL(".", import.meta.url));
const INSTALLED = join(HERE, "../node_modules/redlockd-client");
const TSC = execFileSync("sh", ["-c", "command -v tsc"], { encoding: "utf8" })
  .trim();

test("the tarball has what a user needs, and nothing else", () => {
  const files = readdirSync(INSTALLED, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.path ?? one.parentPath, one.name)
      .slice(INSTALLED.length + 1)).sort();
  const sources = ["alarms", "answer", "caller", "client", "clock", "errors",
    "http1", "identity", "index", "lock", "operation", "ops", "queue", "replicas",
    "talk", "wire", "wish"];
  assert.deepEqual(files, ["LICENSE", "README.md", "package.json",
    ...sources.map((name) => `src/${name}.js`), "src/index.mjs",
    "src/index.d.ts", "src/index.d.mts"].sort());
  for (const file of files)
    assert.equal(readFileSync(join(INSTALLED, file), "utf8"),
      readFileSync(join(SOURCE, file), "utf8"), file);
});

test("no dependencies, the version and the licence of redlockd", () => {
  const about = JSON.parse(readFileSync(join(INSTALLED, "package.json")));
  for (const name of Object.keys(about))
    assert.ok(!/dependencies|scripts|bin/i.test(name), name);
  const text = (file) => readFileSync(file, "utf8");
  assert.equal(about.version, text(join(ROOT, "VERSION")).trim());
  assert.equal(text(join(INSTALLED, "LICENSE")), text(join(ROOT, "LICENSE")));
  for (const file of readdirSync(join(INSTALLED, "src")))
    for (const [, from] of text(join(INSTALLED, "src", file))
      .matchAll(/(?:\bfrom |\brequire\()"(.*)"\)?;/g))
      assert.match(from, /^(node:|\.\/)/, `${file} imports ${from}`);
});

test("the command of the README installs it", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "install."));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "package.json"), '{"type": "module"}');
  const [, command] = readFileSync(join(INSTALLED, "README.md"), "utf8")
    .match(/^```\n(npm install .*)\n```$/m);
  const run = (text) => execFileSync("sh", ["-c", text], { cwd: folder,
    encoding: "utf8", env: { ...process.env, npm_config_offline: "true" } });
  run(command.replace("/path/to/redlockd", ROOT));
  assert.equal(run(`"${process.execPath}" --input-type=module -e '
    import { Lock } from "redlockd-client"; console.log(Lock.name)'`), "Lock\n");
  assert.equal(run(`"${process.execPath}" --input-type=commonjs -e '
    const { Lock } = require("redlockd-client"); console.log(Lock.name)'`),
  "Lock\n");
});

test("require() and import give the same things", () => {
  const required = createRequire(import.meta.url)("redlockd-client");
  assert.deepEqual({ ...redlockd }, { ...required });
});

test("every public name is in the README", () => {
  const text = readFileSync(join(INSTALLED, "README.md"), "utf8");
  const names = [...Object.keys(redlockd), ...ACQUIRE_OPTIONS, ...CLIENT_OPTIONS];
  for (const name of names) assert.match(text, new RegExp(`\\b${name}\\b`), name);
});

// ---- types -----------------------------------------------------------------

const COMMON = ["--strict", "--exactOptionalPropertyTypes", "--target", "es2022",
  "--module", "nodenext", "--moduleResolution", "nodenext"];
const LIBRARIES = ["es2022", "es2022,dom", "esnext,dom"];

const tsc = (...words) => spawnSync(TSC, [...COMMON, ...words],
  { cwd: HERE, encoding: "utf8" });

test("a program that uses everything has no mistake, for each lib", () => {
  for (const lib of LIBRARIES) {
    const { status, stdout } = tsc("--lib", lib, "--noEmit", "types/good.mts");
    assert.equal(status, 0, `${lib}: ${stdout}`);
  }
});

test("a CommonJS program has the types, too", () => {
  for (const resolution of ["nodenext", "node"]) {
    const { status, stdout } = spawnSync(TSC, ["--strict", "--target", "es2022",
      "--module", resolution === "node" ? "commonjs" : resolution,
      "--moduleResolution", resolution, "--lib", "es2022", "--noEmit",
      "types/required.cts"], { cwd: HERE, encoding: "utf8" });
    assert.equal(status, 0, `${resolution}: ${stdout}`);
  }
});

test("each mistake is refused", () => {
  const lines = readFileSync(join(HERE, "types/bad.mts"), "utf8").split("\n");
  const wrong = lines.map((line, i) => line.endsWith("// wrong") ? i + 1 : 0)
    .filter(Boolean);
  assert.ok(wrong.length > 30);
  const { stdout } = tsc("--lib", "es2022,dom", "--noEmit", "types/bad.mts");
  const refused = [...stdout.matchAll(/^types\/bad\.mts\((\d+),/gm)]
    .map((match) => Number(match[1]));
  assert.deepEqual([...new Set(refused)].sort((a, b) => a - b), wrong, stdout);
});

/** What index.d.ts declares: names of values, and members of types. */
function declared() {
  const ts = createRequire(import.meta.url)(
    join(realpathSync(TSC), "../../lib/typescript.js"));
  const file = join(INSTALLED, "src/index.d.ts");
  const program = ts.createProgram([file], { strict: true, target: ts.ScriptTarget.ES2022 });
  const checker = program.getTypeChecker();
  const module = checker.getSymbolAtLocation(program.getSourceFile(file));
  const all = new Map();
  for (const symbol of checker.getExportsOfModule(module)) {
    const type = checker.getDeclaredTypeOfSymbol(symbol);
    all.set(symbol.name, {
      isValue: Boolean(symbol.flags & ts.SymbolFlags.Value),
      members: type.getProperties().map((one) =>
        one.name.replace(/^__@(\w+)@.*/, "@$1")).sort(),
    });
  }
  return all;
}

/** The members that a class has, with those of its instance. */
function members(type, instance = {}) {
  const found = new Set(Object.keys(instance));
  for (let at = type.prototype; at && at !== Object.prototype;
    at = Object.getPrototypeOf(at))
    for (const key of Reflect.ownKeys(at))
      if (key !== "constructor" && key !== inspect.custom &&
          key !== "toString")
        found.add(typeof key === "symbol"
          ? `@${key.description.split(".").at(-1)}` : key);
  return [...found].sort();
}

test("the types have what the code has, and no more", () => {
  const all = declared();
  const values = [...all].filter(([, one]) => one.isValue).map(([name]) => name);
  assert.deepEqual(values.sort(), Object.keys(redlockd).sort());
  const of = (name) => all.get(name).members;
  assert.deepEqual(of("Lock"), members(redlockd.Lock));
  assert.deepEqual(of("Client"), members(redlockd.Client));
  assert.deepEqual(of("AcquireOptions"), [...ACQUIRE_OPTIONS].sort());
  assert.deepEqual(of("ClientOptions"), [...CLIENT_OPTIONS].sort());
  for (const [name, type] of Object.entries(redlockd)) {
    if (!(type.prototype instanceof Error)) continue;
    const error = new type("x", {});
    assert.equal(error.name, name);
    const own = members(type, error).filter((one) =>
      !["name", "message", "stack", "cause"].includes(one));
    const told = of(name).filter((one) =>
      !["name", "message", "stack", "cause"].includes(one));
    assert.deepEqual(told, own, name);
  }
});

