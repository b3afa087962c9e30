/** The golden bytes that the Python tests use, too: tests/protocols/rsio/vectors.json. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Decoder, encode } from "../penstock.js";
import { bytes, hex } from "./_world.js";

const VECTORS = JSON.parse(readFileSync(new URL("../../../tests/protocols/rsio/vectors.json", import.meta.url), "utf8"));
const TAIL = "1263"; // a cancel of stream 99

/** Keeps each message as a line. */
class Sink {
  isClosing = false;
  lines = [];
  streams = new Map([
    [0, this.#stream(0, 0)],
    [1, this.#stream(1, 4)],
  ]);

  #stream(id, elementSize) {
    return {
      elementSize,
      receiveElement: (data, from, to) => this.lines.push(`OnNext ${id} ${hex(data.subarray(from, to))}`),
      receivePacked: (count, data, from) => {
        this.lines.push(`OnNextPacked ${id} ${count} ${hex(data.subarray(from, from + count * elementSize))}`);
      },
      receivePart: (number, part, isLast) => this.lines.push(`${isLast ? "OnNextLastPart" : "OnNextPart"} ${id} ${number} ${hex(part)}`),
    };
  }

  receiveHello = (extensions) => this.lines.push(`ServerHello 0 ${extensions}`);
  receiveGoodbye = (reason) => this.lines.push(`Goodbye ${reason}`);
  receiveSubscribe = (name, id, demand) => this.lines.push(`Subscribe ${name} ${id} ${demand}`);
  receiveRequest = (id, demand) => this.lines.push(`Request ${id} ${demand}`);
  receiveCancel = (id) => this.lines.push(`Cancel ${id}`);
  receiveOnSubscribe = (id, size) => this.lines.push(`OnSubscribe ${id} ${size}`);
  receiveComplete = (id) => this.lines.push(`OnComplete ${id}`);
  receiveError = (id, text) => this.lines.push(`OnError ${id} ${text}`);
  checkExtension = () => {};
  receiveExtension = (type, body) => this.lines.push(`ExtensionMessage ${type} ${hex(body)}`);
}

/** Returns a decoder behind the server's hello, or before it. */
function decoder({ isNew = false } = {}) {
  const sink = new Sink();
  const made = new Decoder(sink);
  if (!isNew) made.feed(bytes("020000"));
  sink.lines = [];
  return [sink, made];
}

const lineOf = ({ message, fields }) => [message, ...Object.values(fields)].join(" ");
const RECEIVED = VECTORS.messages.filter(({ message }) => !["ClientHello", "SwitchEncoding"].includes(message));

test("the file of golden bytes was found", () => {
  assert.ok(RECEIVED.length >= 15);
  assert.ok(VECTORS.refused.length >= 15);
});

for (const vector of RECEIVED) {
  test(`decodes, whole and cut at each byte: ${vector.name}`, () => {
    const isNew = vector.message === "ServerHello";
    for (let cut = 0; cut <= vector.bytes.length; cut += 2) {
      const [sink, made] = decoder({ isNew });
      made.feed(bytes(vector.bytes.slice(0, cut)));
      assert.deepEqual(sink.lines, cut < vector.bytes.length ? [] : [lineOf(vector)]);
      made.feed(bytes(vector.bytes.slice(cut) + TAIL));
      assert.deepEqual(sink.lines, [lineOf(vector), "Cancel 99"]);
      assert.equal(made.held, 0);
    }
  });
}

const NAMES = {
  ClientHello: "clientHello",
  Goodbye: "goodbye",
  Subscribe: "subscribe",
  Request: "request",
  Cancel: "cancel",
  OnError: "onError",
  ExtensionMessage: "extension",
};

for (const { name, message, fields, bytes: expected } of VECTORS.messages.filter((vector) => vector.message in NAMES)) {
  test(`encodes: ${name}`, () => {
    const values = Object.fromEntries(
      Object.entries(fields).map(([key, value]) => [key, key === "body" ? bytes(value) : key === "demand" ? BigInt(value) : value]),
    );
    assert.equal(hex(encode(NAMES[message], values)), expected);
  });
}

for (const { name, bytes: text, reason } of VECTORS.refused) {
  test(`refuses with its last byte: ${name}`, () => {
    const [, made] = decoder();
    made.feed(bytes(text.slice(0, -2)));
    assert.throws(() => made.feed(bytes(text.slice(-2))), { reason });
  });
}

test("the first byte of a server is that of a hello or of a goodbye", () => {
  for (let first = 0; first < 256; first += 1) {
    const [, made] = decoder({ isNew: true });
    if (first === 2 || first === 3) made.feed(Uint8Array.of(first));
    else assert.throws(() => made.feed(Uint8Array.of(first)), { reason: "protocol:hello" });
  }
});

test("numbers above 2^53 stay exact", () => {
  const [sink, made] = decoder();
  made.feed(bytes("11 8180808080808010 ffffffffffffffff7f"));
  assert.deepEqual(sink.lines, ["Request 9007199254740993 9223372036854775807"]);
  assert.equal(hex(encode("request", { subscriber: 9007199254740993n, demand: 2 ** 40 })), "11818080808080801080808080" + "8020");
});

test("random bytes are decoded or refused, and the outcome does not depend on the cuts", () => {
  let seed = 1;
  const random = (most) => {
    seed = (seed * 48271) % 2147483647;
    return seed % most;
  };
  const outcome = (pieces) => {
    const [sink, made] = decoder();
    try {
      for (const piece of pieces) made.feed(piece);
    } catch (error) {
      assert.ok(/^(protocol|limit|version)/.test(error.reason), String(error));
      return [...sink.lines, error.reason];
    }
    return sink.lines;
  };
  const types = [0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x20, 0x10, 0x11, 0x12, 0x40, 0x44, 0x03];
  for (let round = 0; round < 3000; round += 1) {
    const junk = Uint8Array.from({ length: 1 + random(60) }, () => (random(3) ? random(6) : types[random(types.length)]));
    const cut = random(junk.length);
    assert.deepEqual(outcome([junk]), outcome([junk.subarray(0, cut), junk.subarray(cut)]));
  }
});

test("a large element in small chunks is joined once: the copied bytes are linear", (context) => {
  const [sink, made] = decoder();
  let copied = 0;
  const set = Uint8Array.prototype.set;
  context.mock.method(Uint8Array.prototype, "set", function count(source, offset) {
    copied += source.length;
    return set.call(this, source, offset);
  });
  made.feed(bytes("2100 c0843d")); // one million bytes
  for (let at = 0; at < 1_000_000; at += 100) made.feed(new Uint8Array(100));
  assert.equal(sink.lines.length, 1);
  assert.equal(made.held, 0);
  assert.ok(copied < 2_000_000, `${copied} bytes were copied`);
});
