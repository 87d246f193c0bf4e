// SPDX-License-Identifier: MIT
// Our token and certificate for the servers, and the CAs that we trust.
"use strict";

const { readFileSync } = require("node:fs");
const { createSecureContext } = require("node:tls");

// It is sent in a header as it is.
const TOKEN = /^[!-~]{1,4096}$/;

/** Throws a TypeError, which never contains the token itself. */
function checked(token, where) {
  if (token === "") throw new TypeError(`${where} is empty`);
  if (/[\r\n]/.test(token))
    throw new TypeError(`${where} has more than one line`);
  if (typeof token !== "string" || !TOKEN.test(token))
    throw new TypeError(
      `${where} is not 1 to 4096 ASCII letters, digits and signs`);
  return token;
}

function readToken(file) {
  const text = readFileSync(file, "utf8").replace(/\r?\n$/, "");
  return checked(text, `the token file ${file}`);
}

function readTls({ caFile, certFile, keyFile }) {
  const options = { minVersion: "TLSv1.2", rejectUnauthorized: true };
  if (caFile) {
    options.ca = readFileSync(caFile, "utf8");
    if (!options.ca.includes("-----BEGIN "))
      throw new TypeError(`${caFile}: no certificate in it`);
  }
  if (certFile) {
    options.cert = readFileSync(certFile, "utf8");
    options.key = readFileSync(keyFile ?? certFile, "utf8");
  }
  createSecureContext(options); // throws early
  return options;
}

/**
 * A bearer token and the files for TLS, which may be replaced. Those that are
 * omitted come from the environment.
 */
class Identity {
  #token = "";
  #tokenFile;
  #files;
  #tls;

  constructor({ authToken, authTokenFile, caFile, certFile, keyFile }) {
    const env = process.env;
    if (authToken === undefined && authTokenFile === undefined) {
      authToken = env.REDLOCKD_AUTH_TOKEN || undefined;
      authTokenFile = env.REDLOCKD_AUTH_TOKEN_FILE || undefined;
    }
    if (authToken !== undefined && authTokenFile !== undefined)
      throw new TypeError("give either a token or a file that has it");
    this.#tokenFile = authTokenFile;
    if (authTokenFile !== undefined) this.#token = readToken(authTokenFile);
    else if (authToken !== undefined)
      this.#token = checked(authToken, "the token");
    if (!(caFile || certFile || keyFile)) {
      caFile = env.REDLOCKD_CACERT;
      certFile = env.REDLOCKD_CERT;
      keyFile = env.REDLOCKD_KEY;
    }
    if (keyFile && !certFile)
      throw new TypeError("keyFile without certFile: name its certificate");
    this.#files = { caFile, certFile, keyFile };
    this.#tls = readTls(this.#files);
  }

  /** Options for https.Agent. */
  get tls() {
    return this.#tls;
  }

  get headers() {
    return this.#token ? { Authorization: `Bearer ${this.#token}` } : {};
  }

  /**
   * After a 401: reads the token file again. Whether the token now differs from
   * the refused one: another request may have read it first. A file that cannot
   * be read, or is half written, changes nothing.
   */
  refresh(refused) {
    if (this.#tokenFile === undefined) return false;
    try {
      this.#token = readToken(this.#tokenFile);
    } catch {
      // the old one may come to be known again
    }
    return this.headers.Authorization !== refused;
  }

  /** After a handshake that failed: whether the files have changed since. */
  refreshTls() {
    const old = this.#tls;
    try {
      const tls = readTls(this.#files);
      if (["ca", "cert", "key"].every((name) => tls[name] === old[name]))
        return false;
      this.#tls = tls;
      return true;
    } catch {
      return false; // half written
    }
  }
}

module.exports = { Identity };
