/** Connections that are made again, and pages that come back: no demand is lost. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { ConnectionClosed, ConnectionLost, ProtocolError, UsageError } from "../penstock.js";
import { Recorder, World, settle } from "./_world.js";

const HELLO = "0200 04 01020307";

async function subscribed(demand = 5, options = { reconnect: true }) {
  const world = new World();
  const connection = await world.connect(options);
  const recorder = new Recorder(demand);
  connection.publisher("a").subscribe(recorder);
  await settle();
  world.socket.take();
  world.socket.say("200000");
  return { world, connection, recorder };
}

/** The server of the newest WebSocket accepts the client. Returns what the client sends behind its hello. */
async function accept(world) {
  world.socket.open();
  world.socket.take();
  world.socket.say(HELLO);
  await settle();
  return world.socket.take();
}

test("after a loss the stream goes on with the demand that was left", async () => {
  const { world, recorder, connection } = await subscribed();
  world.socket.say("210001aa 210001bb");
  world.socket.lose();
  assert.equal(connection.state, "waiting");
  await world.clock.advance(50);
  assert.equal(world.sockets.length, 2);
  assert.equal(await accept(world), "1001610003");
  world.socket.say("200000 210001cc 2500");
  assert.deepEqual(recorder.signals, [["next", "aa"], ["next", "bb"], ["next", "cc"], ["complete"]]);
});

test("demand that was requested while there was no connection is sent with the next one", async () => {
  const { world, recorder } = await subscribed();
  world.socket.lose();
  recorder.subscription.request(2);
  await world.clock.advance(50);
  assert.equal(await accept(world), "1001610007");
});

test("an element that was unfinished gives its demand back", async () => {
  const { world } = await subscribed();
  world.socket.say("23000001aa");
  world.socket.lose();
  await world.clock.advance(50);
  assert.equal(await accept(world), "1001610005");
});

test("demand without bound stays so", async () => {
  const { world } = await subscribed(Infinity);
  world.socket.say("23000001aa");
  world.socket.lose();
  await world.clock.advance(50);
  assert.equal(await accept(world), "10016100ffffffffffffffff7f");
});

test("a stream that is cancelled in between is not opened again", async () => {
  const { world, recorder } = await subscribed();
  world.socket.lose();
  recorder.subscription.cancel();
  await world.clock.advance(50);
  assert.equal(await accept(world), "");
});

test("an iterator goes on, with what it may hold", async () => {
  const world = new World();
  const connection = await world.connect({ reconnect: true });
  const iterator = connection.stream("a", { demand: 4, type: "text" })[Symbol.asyncIterator]();
  await settle();
  world.socket.say("200000 21000161 21000162");
  assert.equal((await iterator.next()).value, "a");
  world.socket.lose();
  await world.clock.advance(50);
  assert.equal(await accept(world), "1001610003"); // one element waits, three more may come
  world.socket.say("200000 21000163 2500");
  assert.equal((await iterator.next()).value, "b");
  assert.equal((await iterator.next()).value, "c");
  assert.equal((await iterator.next()).done, true);
});

test("the wait doubles with each attempt that fails, up to a bound, with jitter", async () => {
  const { world } = await subscribed(1, { reconnect: { first: 100, most: 300 } });
  const waits = [];
  for (let attempt = 0; attempt < 5; attempt += 1) {
    world.socket.lose();
    const [begin, count] = [world.clock.time, world.sockets.length];
    while (world.sockets.length === count) await world.clock.advance(1);
    waits.push(world.clock.time - begin);
  }
  assert.deepEqual(waits, [50, 100, 150, 150, 150]); // half of each bound, because the random number is 0.5
});

test("a connection that stayed sets the wait back, one that was lost at once does not", async () => {
  const { world } = await subscribed(1, { reconnect: { healthy: 1000 }, keepalive: false });
  const waitAfterLoss = async () => {
    world.socket.lose();
    const [begin, count] = [world.clock.time, world.sockets.length];
    while (world.sockets.length === count) await world.clock.advance(1);
    return world.clock.time - begin;
  };
  assert.equal(await waitAfterLoss(), 50);
  await accept(world);
  assert.equal(await waitAfterLoss(), 100);
  await accept(world);
  await world.clock.advance(1000);
  assert.equal(await waitAfterLoss(), 50);
});

test("after the last attempt the streams end with its error", async () => {
  const { world, recorder, connection } = await subscribed(1, { reconnect: { attempts: 2 } });
  world.socket.lose();
  await world.clock.advance(50);
  assert.deepEqual(recorder.signals, []);
  world.socket.lose();
  assert.deepEqual(recorder.signals, [["error", "ConnectionLost"]]);
  assert.ok((await connection.closed) instanceof ConnectionLost);
});

for (const [what, reason, goesOn] of [
  ["a server that shuts down", "shutdown", true],
  ["a server without room", "places:connections", true],
  ["an idle connection", "idle", true],
  ["a server that blames this client", "limit:requests", false],
  ["an orderly end", "", false],
]) {
  test(`${what} (${reason}) ${goesOn ? "is" : "is not"} connected to again`, async () => {
    const { world, connection } = await subscribed();
    world.socket.say(`03${reason.length.toString(16).padStart(2, "0")}${Buffer.from(reason).toString("hex")}`);
    await settle();
    assert.equal(connection.state, goesOn ? "waiting" : "closed");
    if (!goesOn) assert.ok((await connection.closed) instanceof ConnectionClosed);
  });
}

test("a server that breaks the protocol is not connected to again", async () => {
  const { world, connection } = await subscribed();
  world.socket.say("7f");
  assert.ok((await connection.closed) instanceof ProtocolError);
  assert.equal(world.clock.pending, 0);
});

test("close ends the wait for the next attempt", async () => {
  const { world, connection } = await subscribed();
  world.socket.lose();
  await connection.close();
  assert.equal(world.clock.pending, 0);
  assert.equal(world.sockets.length, 1);
});

test("the first connection is tried again, too, and the program is told of each state", async () => {
  const world = new World();
  const { connect } = await import("../penstock.js");
  const opening = connect("ws://localhost:1/", { ...world.options, reconnect: true });
  world.socket.lose();
  await world.clock.advance(50);
  await accept(world);
  const connection = await opening;
  assert.equal(connection.state, "open");
  assert.deepEqual(world.states, ["connecting", "waiting", "connecting", "open"]);
});

test("late events of a lost WebSocket change nothing", async () => {
  const { world, connection } = await subscribed();
  const old = world.socket;
  old.lose();
  await world.clock.advance(50);
  await accept(world);
  old.say("7f");
  old.lose();
  assert.equal(connection.state, "open");
});

// ------------------------------------------------------------------------------------------------------------- pages

test("a page that goes into the cache closes its WebSocket, and goes on with its demand when it is back", async () => {
  const { world, recorder, connection } = await subscribed();
  world.socket.say("210001aa");
  world.turn("pagehide");
  assert.equal(connection.state, "waiting");
  assert.match(world.socket.take(), /0300$/);
  assert.equal(world.socket.closedWith, 1000);
  await world.clock.freeze(3_600_000);
  assert.equal(world.sockets.length, 1);
  world.turn("pageshow");
  assert.equal(world.sockets.length, 2);
  assert.equal(await accept(world), "1001610004");
  world.socket.say("200000 210001bb");
  assert.deepEqual(recorder.signals, [
    ["next", "aa"],
    ["next", "bb"],
  ]);
});

test("a page without reconnect gets an error that says what to pass", async () => {
  const { world, recorder, connection } = await subscribed(1, {});
  world.turn("pagehide");
  assert.match(recorder.error.message, /back-forward cache.*Pass reconnect/);
  world.turn("pageshow");
  assert.equal(connection.state, "closed");
  assert.equal(world.sockets.length, 1);
});

test("a page that goes into the cache between two attempts makes none there", async () => {
  const { world } = await subscribed();
  world.socket.lose();
  world.turn("pagehide");
  await world.clock.freeze(60_000);
  assert.equal(world.sockets.length, 1);
  world.turn("pageshow");
  assert.equal(world.sockets.length, 2);
});

test("a page that goes away for good closes nothing by itself: the browser does", async () => {
  const { world, connection } = await subscribed();
  world.page.dispatchEvent(Object.assign(new Event("pagehide"), { persisted: false }));
  assert.equal(connection.state, "open");
});

test("a closed connection does not look at the page any more", async () => {
  const { world, connection } = await subscribed();
  connection.close();
  world.socket.say("0300");
  await connection.closed;
  world.turn("pagehide");
  world.turn("pageshow");
  assert.equal(world.sockets.length, 1);
});

// --- positions

const WITH_POSITIONS = "0200 04 01030407";

/** Subscribe to "log", and let the server say that it begins at `first` of 0 to 9. */
async function subscribedToLog({ name = "log", first = 2, options = {}, demand = 9 } = {}) {
  const world = new World();
  const connection = await world.connect({ reconnect: true }, WITH_POSITIONS);
  const recorder = new Recorder(demand);
  connection.publisher(name, options).subscribe(recorder);
  await settle();
  const asked = world.socket.take();
  world.socket.say(`470400${hexByte(first)}0009 200000`);
  return { world, recorder, asked };
}

function hexByte(number) {
  return number.toString(16).padStart(2, "0");
}

/** Lose the connection, make it again, and return the name that the client subscribes to. */
async function nameAfterLoss(world) {
  world.socket.lose();
  await world.clock.advance(50);
  world.socket.open();
  world.socket.take();
  world.socket.say(WITH_POSITIONS);
  await settle();
  return nameIn(world.socket.take());
}

function nameIn(subscribe) {
  const sent = Buffer.from(subscribe, "hex");
  return sent.subarray(2, 2 + sent[1]).toString();
}

test("a stream with positions goes on at the position of the next element", async () => {
  const { world, recorder, asked } = await subscribedToLog();
  assert.equal(nameIn(asked), "log");
  assert.equal(recorder.subscription.position, 2);
  world.socket.say("210001aa 210001bb 23000001cc");
  assert.equal(await nameAfterLoss(world), "log?start=4"); // an unfinished element comes again
  world.socket.say("4704000400 09 200000 210001cc 2500");
  assert.deepEqual(recorder.signals, [["next", "aa"], ["next", "bb"], ["next", "cc"], ["complete"]]);
  assert.equal(recorder.subscription.position, 5);
  assert.equal(recorder.subscription.restarts, 0);
});

test("the places of the program stand in the name, and the stop is kept", async () => {
  const { world, asked } = await subscribedToLog({ options: { start: "earliest", stop: 8 }, first: 0 });
  assert.equal(nameIn(asked), "log?start=earliest&stop=8");
  world.socket.say("210001aa");
  assert.equal(await nameAfterLoss(world), "log?start=1&stop=8");
});

test("words in the name are kept, and the newest position is decided once", async () => {
  const { world } = await subscribedToLog({ name: "log?of=a&start=2&stop=latest" });
  world.socket.say("210001aa");
  assert.equal(await nameAfterLoss(world), "log?of=a&start=3&stop=9");
});

test("a server that begins elsewhere ends the stream", async () => {
  const { world, recorder } = await subscribedToLog();
  world.socket.say("210001aa");
  await nameAfterLoss(world);
  world.socket.say("47040001 00 09 200000 210001bb");
  assert.deepEqual(recorder.signals, [["next", "aa"], ["error", "ProtocolError"]]);
  assert.match(recorder.error.message, /begins at position 1, and 3 was asked for/);
});

test("a server without positions tells none, and a position that was asked for is counted from", async () => {
  const { world } = await subscribed();
  world.socket.lose();
  const other = new World();
  const connection = await other.connect({ reconnect: true });
  const recorder = new Recorder(5);
  connection.publisher("log", { start: 7 }).subscribe(recorder);
  await settle();
  assert.equal(nameIn(other.socket.take()), "log?start=7");
  other.socket.say("200000 210001aa");
  assert.equal(recorder.subscription.position, 8);
});

test("a stream without positions begins anew, which is counted", async (context) => {
  const warned = context.mock.method(console, "warn", () => {});
  const { world, recorder } = await subscribed();
  for (const count of [1, 2]) {
    world.socket.say("210001aa");
    world.socket.lose();
    await world.clock.advance(300);
    await accept(world);
    world.socket.say("200000");
    assert.equal(recorder.subscription.restarts, count);
  }
  assert.equal(warned.mock.callCount(), 1);
  assert.equal(recorder.subscription.position, null);
});

test("an iterator knows the position of the element that comes next", async () => {
  const world = new World();
  const connection = await world.connect({ reconnect: true }, WITH_POSITIONS);
  const stream = connection.stream("log", { type: "text" });
  assert.equal(stream.position, null);
  const iterator = stream[Symbol.asyncIterator]();
  await settle();
  world.socket.say("4704000200 09 200000 21000161 21000162");
  assert.equal(stream.position, 2);
  await iterator.next();
  assert.equal(stream.position, 3);
  assert.equal(stream.restarts, 0);
});

for (const [name, options] of [
  ["log", { start: -1 }],
  ["log", { stop: 1.5 }],
  ["log", { start: "newest" }],
  ["log?start=4", { start: 5 }],
]) {
  test(`wrong places raise where they are given: ${name} ${JSON.stringify(options)}`, async () => {
    const connection = await new World().connect();
    assert.throws(() => connection.stream(name, options), UsageError);
    assert.throws(() => connection.publisher(name, options), UsageError);
  });
}

for (const [what, message] of [
  ["that are cut off", "47020002"],
  ["out of order", "4704000900 02"],
  ["of a stream that is not open", "4704 07 02 00 09"],
  ["that are too long", "474100"],
]) {
  test(`positions ${what} are refused`, async () => {
    const world = new World();
    const connection = await world.connect({}, WITH_POSITIONS);
    connection.publisher("log").subscribe(new Recorder(1));
    await settle();
    world.socket.say(message);
    assert.match(String((await connection.closed)?.reason), /^protocol:position/);
  });
}
