/** The connection: handshake, credentials, keepalive, goodbye, and the answers to a hostile server. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { AuthRefused, ConnectionClosed, ConnectionLost, LIMITS, ProtocolError, UsageError, connect } from "../penstock.js";
import { Recorder, World, settle } from "./_world.js";

const ALL = "0200 04 01020307"; // a server's hello with keepalive, auth, content and requests

/** Connects without the server's hello. */
function connecting(options = {}, url = "ws://localhost:1/") {
  const world = new World();
  const promise = connect(url, { ...world.options, ...options });
  promise.catch(() => {});
  return { world, promise, socket: world.socket };
}

/** Connects, subscribes, and returns what the server may spoil. */
async function subscribed(options = {}) {
  const world = new World();
  const connection = await world.connect(options);
  const recorder = new Recorder(2);
  connection.publisher("a").subscribe(recorder);
  await settle();
  world.socket.take();
  world.socket.say("200000");
  return { world, connection, recorder, socket: world.socket };
}

// ------------------------------------------------------------------------------------------------------------- the handshake

test("the hello lists keepalive, content, position and requests, and the subprotocol is rsio.v0", () => {
  const { socket } = connecting();
  assert.deepEqual(socket.protocols, ["rsio.v0"]);
  assert.equal(socket.take(), "");
  socket.open();
  assert.equal(socket.take(), "010004" + "01030407");
});

test("keepalive: false and bearer change the hello", () => {
  const { socket } = connecting({ keepalive: false, bearer: "t" });
  socket.open();
  assert.equal(socket.take(), "010004" + "02030407");
});

for (const [what, say, error, reason] of [
  ["another protocol", "00", ProtocolError, "protocol:hello"],
  ["another version", "0201", ProtocolError, "version 0"],
  ["a clientHello", "01", ProtocolError, "protocol:hello"],
  ["too many extensions", "020041", ProtocolError, "limit:extensions 65 > 64"],
]) {
  test(`${what} refuses the connection with a goodbye`, async () => {
    const { promise, socket } = connecting();
    socket.open();
    socket.take();
    socket.say(say);
    await assert.rejects(promise, (raised) => raised instanceof error && raised.reason === reason);
    assert.equal(socket.take(), `03${reason.length.toString(16).padStart(2, "0")}${Buffer.from(reason).toString("hex")}`);
    assert.ok([4002, 4008].includes(socket.closedWith));
  });
}

test("a server that says goodbye in place of its hello is quoted", async () => {
  const { promise, socket } = connecting();
  socket.open();
  socket.say("0312706c616365733a636f6e6e656374696f6e73");
  await assert.rejects(promise, (error) => error instanceof ConnectionClosed && error.reason === "places:connections");
});

test("a server that is silent loses the connection after limits.handshake", async () => {
  const { promise, socket, world } = connecting();
  socket.open();
  await world.clock.advance(LIMITS.handshake);
  await assert.rejects(promise, (error) => error instanceof ConnectionLost && /Is it a server of Penstock/.test(error.message));
});

test("a server that cannot be reached is named, with what to check", async () => {
  const { promise, socket } = connecting();
  socket.lose();
  const expected = /could not be reached.*1006.*ws\.origins/;
  await assert.rejects(promise, (error) => error instanceof ConnectionLost && expected.test(error.message));
});

test("an error without a close, as Node 20 reports it, is the end of the attempt", async () => {
  const { promise, socket, world } = connecting();
  socket.dispatchEvent(Object.assign(new Event("error"), { message: "connection refused" }));
  await world.clock.advance(100);
  await assert.rejects(promise, (error) => error instanceof ConnectionLost && /connection refused/.test(error.message));
  assert.equal(world.clock.pending, 0);
});

for (const [what, url, options] of [
  ["no URL", "localhost", {}],
  ["another scheme", "tcp://localhost:1/", {}],
  ["an unknown option", "ws://localhost/", { keepAlive: true }],
  ["an unknown limit", "ws://localhost/", { limits: { frames: 1 } }],
  ["a limit that is no number", "ws://localhost/", { limits: { frame: "1" } }],
  ["a negative time", "ws://localhost/", { keepalive: { interval: -1 } }],
  ["an unknown time", "ws://localhost/", { reconnect: { delay: 1 } }],
  ["a token that is no string", "ws://localhost/", { bearer: 7 }],
  ["no WebSocket", "ws://localhost/", { WebSocket: {} }],
  ["a token over plain ws", "ws://example.com/", { bearer: "t" }],
]) {
  test(`${what} is a UsageError`, async () => {
    const world = new World();
    await assert.rejects(connect(url, { ...world.options, ...options }), UsageError);
    assert.equal(world.sockets.length, 0);
  });
}

test("a token may cross plain ws to this machine, over wss, or if the program says so", () => {
  for (const url of ["ws://127.0.0.1/", "ws://[::1]/", "wss://example.com/"]) connecting({ bearer: "t" }, url);
  connecting({ bearer: "t", insecure: true }, "ws://example.com/");
});

test("a browser that refuses to make a WebSocket gives a UsageError", async () => {
  const { promise } = connecting({
    WebSocket: function Refusing() {
      throw new Error("mixed content");
    },
  });
  await assert.rejects(promise, (error) => error instanceof UsageError && /mixed content/.test(error.message));
});

// ------------------------------------------------------------------------------------------------------------- bearer

test("with a token nothing is sent between the hello, the token and the verdict", async () => {
  const { promise, socket } = connecting({ bearer: async () => "token" });
  socket.open();
  socket.take();
  socket.say(ALL);
  await settle();
  assert.equal(socket.take(), "42" + "0d" + "06626561726572" + "05746f6b656e");
  socket.say("430101");
  const connection = await promise;
  connection.publisher("a").subscribe(new Recorder(1));
  await settle();
  assert.equal(socket.take(), "1001610001");
});

test("a server that shows credentials behind its verdict is let in, once", async () => {
  const { promise, socket } = connecting({ bearer: "token" });
  socket.open();
  socket.say(ALL);
  await settle();
  socket.take();
  socket.say("430101" + "4206" + "0462617365" + "00");
  const connection = await promise;
  await settle();
  assert.equal(socket.take(), "430101");
  socket.say("4206" + "0462617365" + "00");
  assert.ok((await connection.closed) instanceof ProtocolError);
});

test("a server that examines no credentials gets none", async () => {
  const { promise, socket } = connecting({ bearer: "token" });
  socket.open();
  socket.take();
  socket.say("02000101");
  await assert.rejects(promise, AuthRefused);
  assert.doesNotMatch(socket.take(), /746f6b656e/);
});

test("a refused token is AuthRefused, and is not tried again", async () => {
  const { promise, socket, world } = connecting({ bearer: "token", reconnect: true });
  socket.open();
  socket.say(ALL);
  await settle();
  socket.say("030461757468");
  await assert.rejects(promise, AuthRefused);
  assert.equal(world.states.at(-1), "closed");
});

test("a function that fails to return a token ends the connection with its error", async () => {
  const { promise, socket } = connecting({
    bearer: () => {
      throw new Error("signed out");
    },
  });
  socket.open();
  socket.say(ALL);
  await assert.rejects(promise, (error) => error instanceof UsageError && /signed out/.test(error.message));
});

for (const [what, say] of [
  ["a verdict that was not asked for", "430101"],
  ["credentials", "4200"],
]) {
  test(`${what} ends the connection`, async () => {
    const { connection, socket } = await subscribed();
    socket.say(say);
    assert.ok((await connection.closed) instanceof ProtocolError);
  });
}

// ------------------------------------------------------------------------------------------------------------- keepalive

test("a ping is answered by a pong with its body", async () => {
  const { socket } = await subscribed();
  socket.say("40 02 6869");
  await settle();
  assert.equal(socket.take(), "41026869");
});

test("a silent server gets a ping after the interval, and its answer is enough", async () => {
  const { socket, world, connection } = await subscribed();
  await world.clock.advance(19_999);
  assert.equal(socket.take(), "");
  await world.clock.advance(1);
  assert.equal(socket.take(), "4000");
  socket.say("4100");
  await world.clock.advance(20_000);
  assert.equal(connection.state, "open");
  assert.equal(socket.take(), "4000");
});

test("any bytes of the server put the ping off", async () => {
  const { socket, world } = await subscribed();
  await world.clock.advance(15_000);
  socket.say("210001aa");
  await world.clock.advance(19_000);
  assert.equal(socket.take(), "");
  await world.clock.advance(1000);
  assert.equal(socket.take(), "4000");
});

test("a server that answers no ping has lost the connection", async () => {
  const { recorder, world, connection } = await subscribed();
  await world.clock.advance(40_000);
  assert.ok((await connection.closed) instanceof ConnectionLost);
  assert.match(recorder.error.message, /silent/);
});

test("a page that was frozen asks again before it gives up", async () => {
  const { socket, world, connection } = await subscribed();
  await world.clock.advance(20_000);
  assert.equal(socket.take(), "4000");
  await world.clock.freeze(3_600_000);
  assert.equal(socket.take(), "4000");
  assert.equal(connection.state, "open");
  await world.clock.advance(20_000);
  assert.equal(connection.state, "closed");
});

test("a server without the extension gets no ping", async () => {
  const world = new World();
  await world.connect({}, "020000");
  await world.clock.advance(600_000);
  assert.equal(world.socket.take(), "");
});

// ------------------------------------------------------------------------------------------------------------- the end

test("close ends the streams, says goodbye, and closes when it is answered", async () => {
  const { connection, recorder, socket, world } = await subscribed();
  const closing = connection.close();
  assert.deepEqual(recorder.signals, [["error", "ConnectionClosed"]]);
  assert.equal(socket.take(), "0300");
  socket.say("210001aa 0300"); // an element was on its way
  await closing;
  assert.equal(socket.closedWith, 1000);
  assert.equal(await connection.closed, null);
  assert.equal(world.clock.pending, 0);
});

test("close waits no longer than limits.goodbye for the answer", async () => {
  const { connection, socket, world } = await subscribed();
  const closing = connection.close();
  await world.clock.advance(LIMITS.goodbye);
  await closing;
  assert.equal(socket.closedWith, 1000);
  assert.equal(world.clock.pending, 0);
});

test("a goodbye of the server ends the streams with its reason, and is answered", async () => {
  const { connection, recorder, socket, world } = await subscribed();
  socket.say("03 08 73687574646f776e");
  assert.equal(recorder.error.reason, "shutdown");
  assert.ok(recorder.error instanceof ConnectionClosed);
  assert.equal(socket.take(), "0300");
  assert.ok((await connection.closed) instanceof ConnectionClosed);
  assert.equal(socket.closedWith, null);
  socket.lose(1000);
  assert.equal(world.clock.pending, 0);
});

test("an end without a goodbye is ConnectionLost", async () => {
  const { connection, recorder, socket, world } = await subscribed();
  socket.lose();
  assert.match(recorder.error.message, /without a goodbye.*1006/);
  assert.ok((await connection.closed) instanceof ConnectionLost);
  assert.equal(world.clock.pending, 0);
});

test("streams of a closed connection fail at once", async () => {
  const { connection } = await subscribed();
  connection.close();
  const late = new Recorder(1);
  connection.publisher("a").subscribe(late);
  assert.deepEqual(late.signals, [["error", "ConnectionClosed"]]);
});

test("the signal of the connection closes it with the reason", async () => {
  const controller = new AbortController();
  const { connection, recorder, socket } = await subscribed({ signal: controller.signal });
  controller.abort(new Error("enough"));
  assert.equal(recorder.error.message, "enough");
  socket.say("0300");
  assert.equal((await connection.closed).message, "enough");
});

test("an aborted signal ends the attempt to connect", async () => {
  const controller = new AbortController();
  const { promise, socket } = connecting({ signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(promise, /enough/);
  assert.notEqual(socket.closedWith, null);
  await assert.rejects(connect("ws://localhost/", { signal: controller.signal, WebSocket: class {} }), /enough/);
});

// ------------------------------------------------------------------------------------------------------------- hostile servers

for (const [what, say, reason] of [
  ["an unknown type", "7f", "protocol:type 0x7f"],
  ["an extension that is not active", "4500", "protocol:type 0x45"],
  ["an encoding that was not agreed on", "0410", "protocol:type 0x04"],
  ["a ping of 126 bytes", "407e", "protocol:ping"],
  ["a second hello", "020000", "protocol:hello"],
  ["an element of a stream that was not opened", "2107", "protocol:stream 7"],
  ["a second onSubscribe", "200000", "protocol:stream 0"],
  ["the end of an unknown stream", "2507", "protocol:stream 7"],
  ["an error of an unknown stream", "260700", "protocol:stream 7"],
  ["content of an unknown stream", "4403070000", "protocol:content 7"],
  ["content of a stream that has begun", "4403000000", "protocol:content 0"],
  ["content that cannot be read", "44020005", "protocol:content"],
  ["packed elements in a stream without a fixed size", "220001", "protocol:packed"],
  ["three pings at once behind one", "4000400040004000", "limit:pings"],
  ["empty parts without end", "23000000".repeat(101), "limit:glitches"],
  ["tiny parts without end", "2300000101".repeat(1001), "limit:glitches"],
  ["subscribes without end", "1001610101".repeat(1001), "limit:glitches"],
  ["requests for unknown streams without end", "110101".repeat(1001), "limit:glitches"],
  ["cancels of unknown streams without end", "1201".repeat(1001), "limit:glitches"],
]) {
  test(`${what} ends the connection with ${reason}`, async () => {
    const { connection, recorder, socket } = await subscribed();
    socket.say(say);
    const error = await connection.closed;
    assert.ok(error instanceof ProtocolError);
    assert.equal(error.reason, reason);
    assert.deepEqual(recorder.signals.at(-1), ["error", "ProtocolError"]);
    const goodbye = `03${reason.length.toString(16).padStart(2, "0")}${Buffer.from(reason).toString("hex")}`;
    assert.ok(socket.take().endsWith(goodbye));
    assert.notEqual(socket.closedWith, null);
    socket.say("210001aa");
    assert.deepEqual(recorder.signals.at(-1), ["error", "ProtocolError"]);
  });
}

test("oddities below the budget end nothing, and the budget fills again", async () => {
  const { connection, socket, world } = await subscribed({ limits: { oddities: 10 }, keepalive: false });
  for (let round = 0; round < 3; round += 1) {
    socket.say("1201".repeat(10));
    await world.clock.advance(1000);
  }
  assert.equal(connection.state, "open");
  socket.say("1201".repeat(11));
  assert.equal(connection.state, "closed");
});

test("a text message ends the connection", async () => {
  const { connection, socket } = await subscribed();
  socket.sayText("hello");
  assert.match((await connection.closed).message, /text message/);
});

test("a message above limits.message ends the connection", async () => {
  const { connection, socket } = await subscribed({ limits: { message: 8 } });
  socket.say("210005 0102030405");
  assert.equal(connection.state, "open");
  socket.say("210006 010203040506");
  assert.match((await connection.closed).reason, /limit:frame 9 > 8/);
});

test("a server that does not read is given up when limits.outgoing bytes wait", async () => {
  const { connection, socket } = await subscribed({ limits: { outgoing: 100 } });
  socket.bufferedAmount = 101;
  socket.say("4000");
  await settle();
  assert.match((await connection.closed).message, /limits\.outgoing/);
});

test("a subscribe of the server is refused: this side publishes nothing", async () => {
  const { socket } = await subscribed();
  socket.say("100161 ffffffffffffffff7f 01");
  await settle();
  assert.equal(socket.take(), "26ffffffffffffffff7f116e6f2073756368207075626c6973686572");
});

test("late elements of a cancelled stream are dropped, also of one that has not begun", async () => {
  const { recorder, socket, connection } = await subscribed();
  recorder.subscription.cancel();
  const other = new Recorder(1);
  connection.publisher("a").subscribe(other);
  other.subscription.cancel();
  socket.say("210001aa 2100 01bb 2500 200104 2101 11223344 2501".replaceAll(" ", ""));
  assert.equal(connection.state, "open");
  assert.deepEqual([...recorder.signals, ...other.signals], []);
});

test("a cancelled stream that goes on beyond its demand is odd, and ends the connection in the end", async () => {
  const { recorder, socket, connection } = await subscribed({ limits: { oddities: 5 } });
  recorder.subscription.cancel();
  socket.say("210001aa".repeat(7));
  assert.equal(connection.state, "open");
  socket.say("210001aa");
  assert.equal((await connection.closed).reason, "limit:glitches");
});

test("late bytes above limits.late end the connection", async () => {
  const { recorder, socket, connection } = await subscribed({ limits: { late: 3 } });
  recorder.subscription.cancel();
  socket.say("210003aabbcc");
  assert.equal(connection.state, "open");
  socket.say("210001aa");
  assert.equal((await connection.closed).reason, "limit:late");
});

test("cancelled streams without an end are bounded, and those of a minute ago are forgotten", async () => {
  const { socket, connection, world } = await subscribed({ limits: { retired: 4 }, keepalive: false });
  const cancelOne = async () => {
    const recorder = new Recorder(1);
    connection.publisher("a").subscribe(recorder);
    recorder.subscription.cancel();
    await settle();
  };
  for (let count = 0; count < 40; count += 1) {
    await cancelOne();
    await world.clock.advance(30_000);
  }
  assert.equal(connection.state, "open");
  for (let count = 0; count < 5; count += 1) await cancelOne();
  assert.equal((await connection.closed).reason, "limit:ids");
  assert.ok(socket.take().length > 0);
});
