/** A log behind a relay that cuts connections: PENSTOCK_CUT_URL names it, PENSTOCK_COUNT is the number of its elements. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { connect } from "../penstock.js";

const { PENSTOCK_CUT_URL: url, PENSTOCK_COUNT: count } = process.env;
const skip = url ? false : "PENSTOCK_CUT_URL names no relay: `nox -s browser` starts one";

test("a log arrives once and in order, wherever its connections are cut", { skip }, async () => {
  const connection = await connect(url, {
    reconnect: { first: 1, most: 20, healthy: 1 },
    limits: { handshake: 300_000 },
  });
  const stream = connection.stream("log?start=earliest", { type: "text", stop: Number(count) });
  const numbers = [];
  for await (const element of stream) {
    numbers.push(Number(element.split(" ")[0]));
    assert.equal(stream.position, numbers.length);
  }
  assert.deepEqual(numbers, Array.from({ length: Number(count) }, (_, number) => number));
  assert.equal(stream.restarts, 0);
  await connection.close();
});
