/** Requests for one value, with a payload and without one. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { ConnectionLost, PublisherFailed, UsageError } from "../penstock.js";
import { World, bytes, settle } from "./_world.js";

test("a request with a payload has the bytes of the reference", async () => {
  const world = new World();
  const connection = await world.connect();
  const answer = connection.ask("echo", "payload");
  await settle();
  assert.equal(world.socket.take(), "4c130011ff727100000465"  + "63686f7061796c6f6164");
  world.socket.say("200000 2100 07 7061796c6f6164 2500");
  assert.deepEqual(await answer, bytes("7061796c6f6164"));
  await settle();
  assert.equal(world.socket.take(), "");
});

test("a large payload is sent in parts of 16 KiB", async () => {
  const world = new World();
  const connection = await world.connect();
  connection.ask("echo", new Uint8Array(40_000)).catch(() => {});
  await settle();
  const sent = world.socket.take();
  assert.equal(sent.slice(0, 8), "4c848001"); // 1 byte of id, 3 of length, 16,384 of data
  assert.equal(sent.slice(2 * (4 + 16_388), 2 * (4 + 16_388) + 8), "4d818001");
  assert.equal(sent.length / 2, 4 + 16_388 + 4 + 16_385 + 3 + 1 + (40_010 - 2 * 16_384));
});

test("objects are sent as JSON, and an answer is decoded as the program says", async () => {
  const world = new World();
  const connection = await world.connect();
  const answer = connection.ask("add", { x: 1 }, { type: "json" });
  await settle();
  assert.match(world.socket.take(), /7b2278223a317d$/);
  world.socket.say("200000 21000132 2500");
  assert.equal(await answer, 2);
});

test("without a payload it is a subscribe for one element, cancelled if the stream goes on", async () => {
  const world = new World();
  const connection = await world.connect();
  const answer = connection.ask("a");
  await settle();
  assert.equal(world.socket.take(), "1001610001");
  world.socket.say("200000 210001aa");
  assert.deepEqual(await answer, bytes("aa"));
  await settle();
  assert.equal(world.socket.take(), "1200");
});

test("a stream that ends without a value, fails or is aborted rejects", async () => {
  const world = new World();
  const connection = await world.connect();
  const empty = connection.ask("a");
  const failed = connection.ask("a");
  const controller = new AbortController();
  const aborted = connection.ask("a", undefined, { signal: controller.signal });
  await settle();
  world.socket.say("2500 2601 04 626f6f6d");
  await assert.rejects(empty, /without a value/);
  await assert.rejects(failed, PublisherFailed);
  controller.abort(new Error("enough"));
  await assert.rejects(aborted, /enough/);
  await assert.rejects(connection.ask("a", undefined, { signal: controller.signal }), /enough/);
});

test("a server without the extension gets no payload", async () => {
  const world = new World();
  const connection = await world.connect({}, "020000");
  await assert.rejects(connection.ask("a", "payload"), (error) => error instanceof UsageError && /extension 7/.test(error.message));
});

test("a payload above the limit is refused before it is sent", async () => {
  const world = new World();
  const connection = await world.connect({ limits: { element: 1000 } });
  await assert.rejects(connection.ask("a", new Uint8Array(3000)), UsageError);
  await assert.rejects(connection.ask("a", () => {}), UsageError);
});

test("a request with a payload is not repeated on the next connection, because the server may have acted on it", async () => {
  const world = new World();
  const connection = await world.connect({ reconnect: true });
  const sent = connection.ask("a", "payload");
  await settle();
  world.socket.lose();
  await assert.rejects(sent, ConnectionLost);
  const later = connection.ask("a", "payload", { type: "text" });
  await world.clock.advance(100);
  world.socket.open();
  world.socket.take();
  world.socket.say("0200 04 01020307");
  await settle();
  assert.match(world.socket.take(), /^4c/);
  world.socket.say("200000 21000161 2500");
  assert.equal(await later, "a");
});

test("the position of a time is asked for in seconds", async () => {
  const world = new World();
  const connection = await world.connect();
  const found = connection.positionAt("log", new Date(1_500));
  await settle();
  const name = Buffer.from("log?positions&at=1.500000").toString("hex");
  assert.ok(world.socket.take().includes(name));
  const answer = Buffer.from('{"0":{"earliest":0,"latest":9,"addresses":[],"at":7}}').toString("hex");
  world.socket.say(`200000 2100${(answer.length / 2).toString(16)}${answer} 2500`);
  assert.equal(await found, 7);
});

test("a log with several partitions has a position of a time in each, and another answer has none", async () => {
  for (const [text, wanted] of [
    ['{"a":{"at":7},"b":{"at":8}}', /has the partitions a, b; name one, as in log\?partition=a/],
    ['{"a":{}}', /no position of a time/],
    ["7", /no position of a time/],
  ]) {
    const world = new World();
    const connection = await world.connect();
    const found = connection.positionAt("log", 1_500);
    await settle();
    const answer = Buffer.from(text).toString("hex");
    world.socket.say(`200000 2100${(answer.length / 2).toString(16).padStart(2, "0")}${answer} 2500`);
    await assert.rejects(found, wanted);
  }
  const connection = await new World().connect();
  for (const wrong of ["2026", NaN, new Date("soon"), null]) await assert.rejects(connection.positionAt("log", wrong), /is no time/);
});
