/** The partition of a key, by the rule of `penstock.partition_of`. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { UsageError, partitionOf } from "../penstock.js";

const names = Array.from({ length: 1000 }, (_, index) => String(index));

test("the rule is the CRC-32 of the key", () => {
  assert.equal(partitionOf("123456789", names), String(0xcbf43926 % 1000));
  assert.equal(partitionOf("\u00fc", names), partitionOf(new Uint8Array([0xc3, 0xbc]), names));
  assert.equal(partitionOf("", names), "0");
});

test("a key is a text or bytes, and needs partitions", () => {
  for (const key of [1, undefined, [1]]) assert.throws(() => partitionOf(key, names), UsageError);
  assert.throws(() => partitionOf("x", []), UsageError);
});
