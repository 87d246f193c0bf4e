// SPDX-License-Identifier: MIT
// Answers of HTTP/1.1 (RFC 9112), read strictly and without I/O.
//
// One Reader reads one answer. Whatever RFC 9112 does not allow is an error, and
// so is what is allowed but ambiguous, such as an answer with two lengths: after
// it, nobody knows where the next answer would begin.
"use strict";

const LONGEST_HEAD = 16 << 10;
const LONGEST_LINE = 1 << 10; // with the size of a chunk
const LONGEST_BODY = 64 << 20;
const NOTHING = Buffer.alloc(0);
const STATUS = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t -~\x80-\xff]*)?$/;
const FIELD = /^([!#$%&'*+.^_`|~\w-]+):[\t ]*([\t -~\x80-\xff]*?)[\t ]*$/;

/** What is no answer of HTTP/1.1, or too long. */
class BadAnswer extends Error {}

/** Names in lower case; of a name that comes twice, all values with commas. */
function readFields(lines) {
  const fields = Object.create(null);
  for (const line of lines) {
    const found = FIELD.exec(line);
    if (!found) throw new BadAnswer("a header line is malformed");
    const name = found[1].toLowerCase();
    fields[name] = name in fields ? `${fields[name]}, ${found[2]}` : found[2];
  }
  return fields;
}

/** The words of a list such as that of Connection. */
function has(list, word) {
  return list !== undefined &&
    list.toLowerCase().split(",").some((one) => one.trim() === word);
}

class Reader {
  /** Whether a byte has come. */
  hasBegun = false;
  /** undefined until the whole answer has come. */
  answer;
  #next = this.#readHead;
  #bytes = NOTHING; // not read yet
  #status;
  #fields;
  #isLast; // the server closes the connection after it
  #left = 0; // of the body, or of a chunk
  #body = [];
  #size = 0;

  /**
   * Takes the next bytes; returns the answer as soon as it is complete. Throws
   * BadAnswer.
   */
  take(piece) {
    this.hasBegun = true;
    this.#bytes = this.#bytes.length === 0 ? piece
      : Buffer.concat([this.#bytes, piece]);
    while (!this.answer && this.#next());
    // after an answer that is complete, nobody has asked for more
    if (this.answer && this.#bytes.length > 0) this.answer.isLast = true;
    return this.answer;
  }

  /** The connection has ended; returns the answer if that is how it ends. */
  end() {
    if (this.#next === this.#readToTheEnd) this.#finish();
    return this.answer;
  }

  // Each of these reads one thing; false: there are not yet enough bytes.

  #readHead() {
    const end = this.#bytes.indexOf("\r\n\r\n");
    if ((end < 0 ? this.#bytes.length : end) > LONGEST_HEAD)
      throw new BadAnswer("the head is too long");
    if (end < 0) return false;
    const lines = this.#bytes.latin1Slice(0, end).split("\r\n");
    this.#bytes = this.#bytes.subarray(end + 4);
    const found = STATUS.exec(lines.shift());
    if (!found) throw new BadAnswer("the status line is malformed");
    this.#status = Number(found[2]);
    this.#fields = readFields(lines);
    this.#isLast = found[1] === "0" || has(this.#fields.connection, "close");
    if (this.#status === 101) throw new BadAnswer("nobody asked for 101");
    if (this.#status >= 200) this.#findBody();
    return true; // after 100, there is another head
  }

  #findBody() {
    const length = this.#fields["content-length"];
    const coding = this.#fields["transfer-encoding"];
    if (length !== undefined && coding !== undefined)
      throw new BadAnswer("it has a length and a transfer coding");
    if (this.#status === 204 || this.#status === 304) {
      this.#finish();
    } else if (coding !== undefined) {
      if (coding.toLowerCase() !== "chunked")
        throw new BadAnswer("the transfer coding is unknown");
      this.#next = this.#readSize;
    } else if (length !== undefined) {
      if (!/^\d{1,15}$/.test(length))
        throw new BadAnswer("the length is malformed");
      this.#expect(Number(length), this.#readBody);
      if (this.#left === 0) this.#finish();
    } else {
      this.#next = this.#readToTheEnd;
    }
  }

  #expect(length, next) {
    if (this.#size + length > LONGEST_BODY)
      throw new BadAnswer("the answer is too long");
    this.#left = length;
    this.#next = next;
  }

  /** Takes what there is, up to #left. */
  #keep() {
    const piece = this.#bytes.subarray(0, this.#left);
    this.#body.push(piece);
    this.#size += piece.length;
    this.#left -= piece.length;
    this.#bytes = this.#bytes.subarray(piece.length);
    return this.#left === 0;
  }

  #readBody() {
    if (this.#keep()) this.#finish();
    return false;
  }

  #readToTheEnd() {
    this.#expect(this.#bytes.length, this.#readToTheEnd);
    this.#keep();
    return false;
  }

  /** A line without its end; undefined: it has not come yet. */
  #readLine(longest) {
    const end = this.#bytes.indexOf("\r\n");
    if ((end < 0 ? this.#bytes.length - 1 : end) > longest)
      throw new BadAnswer("a line is too long");
    if (end < 0) return undefined;
    const line = this.#bytes.latin1Slice(0, end);
    this.#bytes = this.#bytes.subarray(end + 2);
    return line;
  }

  #readSize() {
    const line = this.#readLine(LONGEST_LINE);
    if (line === undefined) return false;
    const found = /^([\da-f]{1,8})[\t ]*(?:;[\t -~\x80-\xff]*)?$/i.exec(line);
    if (!found) throw new BadAnswer("the size of a chunk is malformed");
    this.#expect(parseInt(found[1], 16), this.#readChunk);
    if (this.#left === 0) this.#next = this.#readTrailer;
    return true;
  }

  #readChunk() {
    if (!this.#keep()) return false;
    this.#next = this.#readChunkEnd;
    return true;
  }

  #readChunkEnd() {
    const line = this.#readLine(0);
    if (line === undefined) return false;
    this.#next = this.#readSize;
    return true;
  }

  #readTrailer() {
    const line = this.#readLine(LONGEST_HEAD);
    if (line === undefined) return false;
    if (line === "") this.#finish();
    else readFields([line]); // and forgets it
    return true;
  }

  #finish() {
    const idle = /(?:^|[ ,])timeout=(\d{1,6})(?:$|[ ,])/i
      .exec(this.#fields["keep-alive"] ?? "");
    const body = this.#body.length === 1 ? this.#body[0]
      : Buffer.concat(this.#body);
    this.answer = {
      status: this.#status,
      text: body.utf8Slice(0, body.length),
      retryAfter: this.#fields["retry-after"] ?? "",
      contentType: this.#fields["content-type"] ?? "",
      isLast: this.#isLast || this.#next === this.#readToTheEnd,
      // how long the server keeps the connection, if it says so
      idleMs: idle ? Number(idle[1]) * 1000 : Infinity,
    };
  }
}

module.exports = { BadAnswer, Reader };
