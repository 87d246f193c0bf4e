// SPDX-License-Identifier: MIT
// A line for each test; ends with "N passed, N failed".
import { relative } from "node:path";

const isSuite = (data) => data.details?.type === "suite";

function told(error) {
  const cause = error?.cause ?? error;
  return cause?.stack ?? String(cause?.message ?? cause);
}

export default async function* report(source) {
  let passed = 0;
  let failed = 0;
  for await (const { type, data } of source) {
    if (type === "test:stdout" || type === "test:stderr") yield data.message;
    if (type !== "test:pass" && type !== "test:fail") continue;
    // a file is a test, too: only its failure tells something of its own
    const isFile = data.nesting === 0 && data.name.endsWith(".mjs");
    if (isSuite(data) || (isFile && type === "test:pass")) continue;
    if (data.skip !== undefined) {
      yield `skip  ${data.name} ${data.skip}\n`;
      continue;
    }
    const isBad = type === "test:fail";
    if (isBad) failed += 1;
    else passed += 1;
    const where = data.file ? `${relative(".", data.file)}: ` : "";
    const tookS = (data.details.duration_ms / 1000).toFixed(1);
    yield `${isBad ? "FAIL " : "ok   "} ${where}${data.name} (${tookS} s)\n`;
    if (isBad) yield `${told(data.details.error)}\n`;
  }
  yield `${passed} passed, ${failed} failed\n`;
}
