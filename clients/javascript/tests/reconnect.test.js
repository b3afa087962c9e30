/** Connections that are made again, and pages that come back: no demand is lost. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { ConnectionClosed, ConnectionLost, ProtocolError } from "../penstock.js";
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
