/** A server of Penstock, over a real WebSocket. PENSTOCK_URL names it; PENSTOCK_WS is the folder of the package `ws`, if it is used. */

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { ConnectionLost, PublisherFailed, connect } from "../penstock.js";

const { PENSTOCK_URL: url, PENSTOCK_WS: folder } = process.env;
const skip = url ? false : "PENSTOCK_URL names no server: `nox -s browser` starts one";
const WebSocket = folder ? createRequire(import.meta.url)(folder).WebSocket : globalThis.WebSocket;
// Generous, because a busy machine may take longer than the 10 s that are the default.
const options = { WebSocket, limits: { handshake: 300_000 } };

async function collect(iterable) {
  const elements = [];
  for await (const element of iterable) elements.push(element);
  return elements;
}

test("reads streams of objects, of texts and of bytes on one connection", { skip }, async () => {
  const connection = await connect(url, options);
  const [numbers, texts, blocks] = await Promise.all([
    collect(connection.stream("numbers/1000", { type: "json" })),
    collect(connection.stream("texts", { type: "text" })),
    collect(connection.stream("blocks/300?size=300", { type: "bytes" })),
  ]);
  assert.deepEqual(numbers, Array.from({ length: 1000 }, (_, number) => ({ number })));
  assert.deepEqual(texts, ["grün", "€", ""]);
  assert.equal(blocks.length, 300);
  assert.ok(blocks.every((block) => block.length === 300 && block[299] === 299 % 256));
  await connection.close();
  assert.equal(await connection.closed, null);
});

test("joins large elements", { skip }, async () => {
  const connection = await connect(url, options);
  const [block] = await collect(connection.stream("blocks/1?size=3000000", { type: "bytes" }));
  assert.equal(block.length, 3_000_000);
  assert.equal(block[2_999_999], 2_999_999 % 256);
  await connection.close();
});

test("gets exactly the elements that it requests", { skip }, async () => {
  const connection = await connect(url, options);
  const elements = [];
  const finished = new Promise((resolve) => {
    connection.publisher("numbers/1000", { type: "json" }).subscribe({
      onSubscribe(subscription) {
        this.subscription = subscription;
        subscription.request(3);
      },
      onNext(element) {
        elements.push(element.number);
        if (elements.length === 3) connection.ask("texts").then(() => this.subscription.request(2));
        if (elements.length === 5) connection.ask("texts").then(resolve);
      },
      onError: resolve,
      onComplete: resolve,
    });
  });
  await finished;
  assert.deepEqual(elements, [0, 1, 2, 3, 4]);
  await connection.close();
});

test("a break cancels, and the connection goes on", { skip }, async () => {
  const connection = await connect(url, options);
  for (let round = 0; round < 20; round += 1) {
    for await (const block of connection.stream("blocks/100000", { type: "bytes" })) {
      assert.equal(block.length, 64);
      break;
    }
  }
  assert.equal(connection.state, "open");
  await connection.close();
});

test("asks with a payload, small and large", { skip }, async () => {
  const connection = await connect(url, options);
  assert.equal(await connection.ask("echo", "payload", { type: "text" }), "payload");
  assert.equal((await connection.ask("echo", new Uint8Array(200_000))).length, 200_000);
  await connection.close();
});

test("errors of the server arrive with their text", { skip }, async () => {
  const connection = await connect(url, options);
  const elements = [];
  const failing = async () => {
    for await (const element of connection.stream("failing", { type: "json" })) elements.push(element);
  };
  await assert.rejects(failing(), (error) => error instanceof PublisherFailed && error.reason === "boom");
  assert.deepEqual(elements, [1]);
  await assert.rejects(connection.ask("unknown"), (error) => error.reason === "no such publisher");
  await connection.close();
});

test("a port without a server is ConnectionLost", { skip }, async () => {
  await assert.rejects(connect("ws://127.0.0.1:9/", options), ConnectionLost);
});

test("finds the position of a time", { skip }, async () => {
  const connection = await connect(url, options);
  await connection.ask("fill the log", "element");
  const end = await connection.positionAt("log", new Date(Date.now() + 3_600_000));
  assert.ok(end > 0);
  assert.equal(await connection.positionAt("log", new Date(0)), 0);
  const elements = await collect(connection.stream("log", { start: end - 1, stop: "latest", type: "text" }));
  assert.equal(elements[0], "element");
  await connection.close();
});
