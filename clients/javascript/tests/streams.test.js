/** Streams: demand, signals, the iterator, and the bounds of each. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS, LimitExceeded, ProtocolError, PublisherFailed, UsageError } from "../penstock.js";
import { Recorder, World, settle } from "./_world.js";

const SUBSCRIBE_A = "100161"; // without id and demand

async function subscribed(demand, { answer = "200000", options = {}, limits = {} } = {}) {
  const world = new World();
  const connection = await world.connect({ limits });
  const recorder = new Recorder(demand);
  connection.publisher("a", options).subscribe(recorder);
  await settle();
  world.subscribeBytes = world.socket.take();
  if (answer) world.socket.say(answer);
  return { world, connection, recorder, socket: world.socket };
}

test("the subscribe carries the demand that onSubscribe requests", async () => {
  const { world } = await subscribed(300);
  assert.equal(world.subscribeBytes, `${SUBSCRIBE_A}00ac02`);
});

test("demand without bound is 2^63-1, and is sent once", async () => {
  const { world, recorder, socket } = await subscribed(Infinity);
  assert.equal(world.subscribeBytes, `${SUBSCRIBE_A}00ffffffffffffffff7f`);
  recorder.subscription.request(5);
  await settle();
  assert.equal(socket.take(), "");
});

test("requests of one task are sent as one message", async () => {
  const { recorder, socket } = await subscribed(0);
  recorder.subscription.request(3);
  recorder.subscription.request(4);
  await settle();
  assert.equal(socket.take(), "110007");
});

test("elements and the end are delivered in order, from any packing", async () => {
  const { recorder, socket } = await subscribed(3);
  socket.say("210002aa");
  socket.say("bb210001cc");
  socket.say("2500");
  assert.deepEqual(recorder.signals, [["next", "aabb"], ["next", "cc"], ["complete"]]);
});

test("elements of fixed size come alone, packed and in parts", async () => {
  const { recorder, socket } = await subscribed(5, { answer: "200002" });
  socket.say("2100aabb 220002 ccddeeff 23000001 11 24000001 22".replaceAll(" ", ""));
  assert.deepEqual(
    recorder.signals.map(([, element]) => element),
    ["aabb", "ccdd", "eeff", "1122"],
  );
});

for (const [type, element, value] of [
  ["text", "03e282ac", "€"],
  ["json", "077b2278223a317d", { x: 1 }],
  ["bytes", "0101", "01"],
  [(raw) => raw.length, "020000", 2],
]) {
  test(`decodes elements as ${type}`, async () => {
    const { recorder, socket } = await subscribed(1, { options: { type } });
    socket.say(`2100${element}`);
    assert.deepEqual(recorder.signals, [["next", value]]);
  });
}

test("the announced serializer decides if the program names none", async () => {
  const { recorder, socket } = await subscribed(1, { answer: "44 07 00 04 6a736f6e 00 200000" });
  socket.say("2100 02 3432");
  assert.deepEqual(recorder.signals, [["next", 42]]);
});

test("a serializer other than the announced one cancels the stream with an error that names both", async () => {
  const { recorder, socket } = await subscribed(1, { answer: "44 07 00 04 6a736f6e 00 200000", options: { type: "text" } });
  await settle();
  assert.ok(recorder.error instanceof UsageError);
  assert.match(recorder.error.message, /"json".*"text"/);
  assert.equal(socket.take(), "1200");
});

test("an announced serializer that the program lacks is an error that names it; decoders add one", async () => {
  const announced = "44 0a 00 07 6d73677061636b 00 200000";
  const { recorder } = await subscribed(1, { answer: announced });
  assert.match(recorder.error.message, /msgpack.*bytes, text, json/);
  const other = await subscribed(1, { answer: announced, options: { decoders: { msgpack: (raw) => raw[0] } } });
  other.socket.say("21000109");
  assert.deepEqual(other.recorder.signals, [["next", 9]]);
});

test("an element that cannot be decoded ends its stream alone", async () => {
  const { recorder, socket, connection } = await subscribed(2, { options: { type: "json" } });
  socket.say("2100017b");
  await settle();
  assert.ok(recorder.error instanceof ProtocolError);
  assert.equal(socket.take(), "1200");
  assert.equal(connection.state, "open");
});

test("a refusal and a failure have the text of the server and say which they are", async () => {
  const refused = await subscribed(1, { answer: "2600 11 6e6f2073756368207075626c6973686572" });
  assert.ok(refused.recorder.error instanceof PublisherFailed);
  assert.match(refused.recorder.error.message, /refused.*no such publisher.*Check the name/);
  const failed = await subscribed(1);
  failed.socket.say("2600 04 626f6f6d");
  assert.match(failed.recorder.error.message, /ended.*boom/);
  assert.equal(failed.recorder.error.reason, "boom");
});

test("cancel is sent once, and nothing is delivered after it", async () => {
  const { recorder, socket } = await subscribed(3);
  recorder.subscription.cancel();
  recorder.subscription.cancel();
  recorder.subscription.request(1);
  await settle();
  assert.equal(socket.take(), "1200");
  socket.say("21000101 2500");
  assert.deepEqual(recorder.signals, []);
});

for (const n of [0, -1, 1.5, NaN, "3", 3n, undefined]) {
  test(`request(${String(n)} as ${typeof n}) ends the stream with a UsageError`, async () => {
    const { recorder, socket } = await subscribed(1);
    recorder.subscription.request(n);
    await settle();
    assert.ok(recorder.error instanceof UsageError);
    assert.equal(socket.take(), "1200");
  });
}

for (const [what, message] of [
  ["an element", "21000101"],
  ["a part", "2300000101"],
  ["a last part", "2400000101"],
]) {
  test(`${what} beyond the demand cancels the stream and reports it`, async () => {
    const { recorder, socket, connection } = await subscribed(1);
    socket.say(`21000101 ${message}`);
    await settle();
    assert.equal(recorder.signals.length, 2);
    assert.ok(recorder.error instanceof ProtocolError);
    assert.equal(socket.take(), "1200");
    assert.equal(connection.state, "open");
  });
}

test("a packed message beyond the demand is judged as a whole", async () => {
  const { recorder, socket } = await subscribed(2, { answer: "200001" });
  socket.say("220003010203");
  assert.deepEqual(recorder.signals, [["error", "ProtocolError"]]);
});

test("a subscriber that throws loses its stream, and no other one", async (context) => {
  const reported = [];
  globalThis.reportError = (error) => reported.push(error.message);
  context.after(() => delete globalThis.reportError);
  const { connection, recorder, socket } = await subscribed(2);
  const faulty = new Recorder(2);
  faulty.onNext = () => {
    throw new Error("fault");
  };
  connection.publisher("a").subscribe(faulty);
  await settle();
  socket.take();
  socket.say("200100 21010101 21000101");
  await settle();
  assert.deepEqual(reported, ["fault"]);
  assert.equal(socket.take(), "1201");
  assert.deepEqual(recorder.signals, [["next", "01"]]);
});

test("a subscriber without its methods is refused with a TypeError", async () => {
  const { connection } = await subscribed(1);
  for (const wrong of [null, {}, { onNext() {} }]) assert.throws(() => connection.publisher("a").subscribe(wrong), TypeError);
});

// ------------------------------------------------------------------------------------------------------------- parts

test("parts are joined, also those of interleaved elements", async () => {
  const { recorder, socket } = await subscribed(2);
  socket.say("23000001aa 23000101cc 24000001bb 24000101dd");
  assert.deepEqual(recorder.signals, [
    ["next", "aabb"],
    ["next", "ccdd"],
  ]);
});

test("the end within an element is an error, and is not cancelled", async () => {
  const { recorder, socket } = await subscribed(2);
  socket.say("23000001aa 2500");
  await settle();
  assert.deepEqual(recorder.signals, [["error", "ProtocolError"]]);
  assert.equal(socket.take(), "");
});

for (const [limit, limits, message] of [
  ["partials", { partials: 1 }, "23000001aa 23000101aa"],
  ["partialsInAll", { partialsInAll: 1 }, "23000001aa 23000101aa"],
  ["partialBytes", { partialBytes: 2 }, "23000001aa 23000002bbcc"],
  ["parts", { parts: 2 }, "23000001aa 23000001aa 23000001aa"],
  ["element", { element: 2 }, "23000001aa 24000002bbcc"],
]) {
  test(`limits.${limit} ends the stream alone`, async () => {
    const { recorder, socket, connection } = await subscribed(9, { limits });
    socket.say(message);
    await settle();
    assert.ok(recorder.error instanceof ProtocolError, String(recorder.error));
    assert.equal(socket.take(), "1200");
    assert.equal(connection.state, "open");
  });
}

test("an element at each of these limits is delivered", async () => {
  const limits = { partials: 1, partialsInAll: 1, partialBytes: 3, parts: 2, element: 3 };
  const { recorder, socket } = await subscribed(2, { limits });
  socket.say("23000001aa 24000002bbcc 23000001aa 24000002bbcc");
  assert.deepEqual(recorder.signals, [
    ["next", "aabbcc"],
    ["next", "aabbcc"],
  ]);
});

test("an element that stays unfinished for limits.partialAge ends its stream", async () => {
  const { recorder, socket, world } = await subscribed(2);
  socket.say("23000001aa");
  await world.clock.advance(LIMITS.partialAge - 1);
  assert.deepEqual(recorder.signals, []);
  await world.clock.advance(1);
  assert.match(recorder.error.message, /unfinished/);
});

test("joined elements of a fixed size have that size", async () => {
  const { recorder, socket } = await subscribed(2, { answer: "200004" });
  socket.say("23000001aa 24000001bb");
  assert.match(recorder.error.message, /2 bytes/);
});

// ------------------------------------------------------------------------------------------------------------- the iterator

/** Reads a stream into a list; `read(n)` waits for n more elements. */
async function iterating(options = {}, limits = {}) {
  const world = new World();
  const connection = await world.connect({ limits });
  const stream = connection.stream("a", options);
  const iterator = stream[Symbol.asyncIterator]();
  await settle();
  const first = world.socket.take();
  world.socket.say("200000");
  return { world, connection, stream, iterator, first, socket: world.socket };
}

test("the iterator begins with the elements that fit if each is as long as limits.element", async () => {
  const { first } = await iterating();
  assert.equal(LIMITS.buffer / LIMITS.element, 4);
  assert.equal(first, `${SUBSCRIBE_A}0004`);
});

test("the iterator requests all it may hold once it knows the length of an element", async () => {
  const { iterator, socket } = await iterating();
  socket.say("210001aa");
  await iterator.next();
  await settle();
  assert.equal(socket.take(), "1100fd01"); // 253 and the 3 that are outstanding are 256
});

test("the iterator renews the demand in batches of a quarter", async () => {
  const { iterator, socket } = await iterating({ demand: 8 }, { element: 1024 });
  socket.say("210001aa".repeat(8));
  await iterator.next();
  await settle();
  assert.equal(socket.take(), "");
  await iterator.next();
  await settle();
  assert.equal(socket.take(), "110002");
});

test("large elements make the window smaller", async () => {
  const { iterator, socket } = await iterating({ demand: 100, buffer: 4000 }, { element: 1000 });
  socket.say(`2100e807${"00".repeat(1000)}`);
  await iterator.next();
  await settle();
  assert.equal(socket.take(), "110001"); // 3 are outstanding; 4 x 1,000 bytes fit
});

test("more bytes than the option buffer cancel the stream with an error that tells what to do", async () => {
  const { iterator, socket, world } = await iterating({ buffer: 4096 }, { element: 1024 });
  socket.say("210001aa");
  await iterator.next(); // now 256 are requested
  await settle();
  socket.take();
  for (let index = 0; index < 5; index += 1) socket.say(`21008008${"00".repeat(1024)}`);
  await settle();
  assert.equal(socket.take(), "1200");
  await assert.rejects(iterator.next(), (error) => error instanceof LimitExceeded && /option buffer.*smaller demand/.test(error.message));
  assert.deepEqual(await iterator.next(), { value: undefined, done: true });
  assert.equal(world.states.at(-1), "open");
});

test("break cancels", async () => {
  const { stream, iterator, socket } = await iterating();
  socket.say("210001aa");
  for await (const element of { [Symbol.asyncIterator]: () => iterator }) {
    assert.deepEqual([...element], [0xaa]);
    break;
  }
  await settle();
  assert.match(socket.take(), /1200$/);
});

test("elements that have arrived come before the error", async () => {
  const { iterator, socket } = await iterating();
  socket.say("210001aa 2600 04 626f6f6d");
  assert.equal((await iterator.next()).value[0], 0xaa);
  await assert.rejects(iterator.next(), PublisherFailed);
  assert.deepEqual(await iterator.next(), { value: undefined, done: true });
});

test("a waiting reader gets the element, the end and the error", async () => {
  const one = await iterating();
  const waiting = one.iterator.next();
  one.socket.say("210001aa");
  assert.equal((await waiting).value[0], 0xaa);
  const last = one.iterator.next();
  one.socket.say("2500");
  assert.deepEqual(await last, { value: undefined, done: true });
  const other = await iterating();
  const failing = other.iterator.next();
  other.socket.say("2600 04 626f6f6d");
  await assert.rejects(failing, PublisherFailed);
});

test("a second next() before the first has answered is refused", async () => {
  const { iterator } = await iterating();
  iterator.next();
  await assert.rejects(iterator.next(), UsageError);
});

test("a stream is iterated once", async () => {
  const { stream } = await iterating();
  assert.throws(() => stream[Symbol.asyncIterator](), UsageError);
});

test("the signal of a stream ends it at once, with the reason, and discards what waits", async () => {
  const controller = new AbortController();
  const { iterator, socket } = await iterating({ signal: controller.signal });
  socket.say("210001aa");
  controller.abort(new Error("enough"));
  await settle();
  assert.equal(socket.take(), "1200");
  await assert.rejects(iterator.next(), /enough/);
});

test("a long stream does not keep the elements that were read", async () => {
  const { iterator, socket } = await iterating({ demand: 4 }, { element: 16 });
  for (let round = 0; round < 3000; round += 1) {
    socket.say(round === 0 ? "210001aa210001aa" : "210001aa");
    assert.equal((await iterator.next()).done, false);
    await settle();
  }
  assert.equal((await iterator.next()).value[0], 0xaa);
});

for (const [option, value] of [["demand", 0], ["demand", 1.5], ["buffer", -1], ["demand", "8"]]) {
  test(`${option}: ${String(value)} is refused`, async () => {
    const world = new World();
    const connection = await world.connect();
    assert.throws(() => connection.stream("a", { [option]: value }), UsageError);
  });
}

test("names have a limit, and are strings", async () => {
  const world = new World();
  const connection = await world.connect({ limits: { name: 3 } });
  assert.throws(() => connection.stream("€€"), /6 bytes/);
  assert.throws(() => connection.publisher(7), UsageError);
  connection.stream("€");
});
