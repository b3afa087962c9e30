/** Streams over HTTP: a server of the mapping that is the test itself, without a network and without time. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { stream } from "../http.js";
import { AuthRefused, ConnectionClosed, ConnectionLost, LimitExceeded, ProtocolError, PublisherFailed, UsageError } from "../penstock.js";
import { Clock, settle } from "./_world.js";

const URL_OF_NUMBERS = "http://server.example/p/numbers";

/** A batch: the length of each element in four bytes, then the element. */
function batch(...texts) {
  return Buffer.concat(texts.flatMap((text) => [Buffer.from([0, 0, 0, Buffer.byteLength(text)]), Buffer.from(text)]));
}

function answer(status, headers = {}, body = null) {
  return new Response(body, { status, headers });
}

function elements(position, ...texts) {
  return answer(200, { "Content-Encoding": "X-Rsio-LengthPrefixedElements", "X-Rsio-Position": String(position) }, batch(...texts));
}

/** A body that yields its chunks, and breaks if `isBroken`. */
function broken(headers, ...chunks) {
  const body = new ReadableStream({
    pull(controller) {
      if (chunks.length > 0) controller.enqueue(chunks.shift());
      else controller.error(new TypeError("network error"));
    },
  });
  return answer(200, headers, body);
}

/** A server that gives its answers in order, and keeps the requests. */
class Server {
  requests = [];
  #answers;

  constructor(...answers) {
    this.#answers = answers;
    this.fetch = this.fetch.bind(this);
  }

  async fetch(url, request) {
    this.requests.push({ url, ...request });
    if (url.endsWith("/cancel")) return answer(200);
    if (request.signal?.aborted) throw request.signal.reason;
    if (this.requests.length === 1 && !this.refusesFirst) return answer(201, { Location: "../s/secret" });
    const next = this.#answers.shift();
    if (next instanceof Error) throw next;
    return next ?? new Promise((resolve, reject) => request.signal.addEventListener("abort", () => reject(request.signal.reason)));
  }

  get paths() {
    return this.requests.map(({ url }) => url.replace("http://server.example", ""));
  }
}

async function collect(iterable) {
  const all = [];
  for await (const element of iterable) all.push(element);
  return all;
}

test("reads batches to the end, and says what it has", async () => {
  const server = new Server(elements(0, "a", "b"), elements(2, "c"), answer(410));
  assert.deepEqual(await collect(stream(URL_OF_NUMBERS, { type: "text", demand: 4, fetch: server.fetch })), ["a", "b", "c"]);
  assert.equal(server.paths[0], "/p/numbers?request=4");
  assert.ok(server.paths.slice(1).every((path) => path.startsWith("/s/secret?request=")));
  assert.deepEqual(server.requests.slice(1).map(({ headers }) => headers["X-Rsio-Position"]), ["0", "2", "3"]);
  assert.ok(server.requests.every(({ method }) => method === "PUT"));
});

test("requests no more than the window", async () => {
  const server = new Server(elements(0, "a", "b"), elements(2, "c"), answer(410));
  const reading = stream(URL_OF_NUMBERS, { type: "text", demand: 2, fetch: server.fetch });
  assert.equal((await reading.next()).value, "a");
  await settle();
  assert.deepEqual(server.requests.map(({ headers }) => Number(headers["X-Rsio-Requested"])), [2, 2, 3]);
  await reading.return();
});

test("decodes a single element, an empty one, and elements in pieces of any size", async () => {
  const pieces = [...batch("Grün", "")].map((byte) => Uint8Array.of(byte));
  const body = new ReadableStream({
    pull(controller) {
      if (pieces.length > 0) controller.enqueue(pieces.shift());
      else controller.close();
    },
  });
  const headers = { "X-Rsio-Position": "1", "Content-Encoding": "x-rsio-lengthprefixedelements" };
  const server = new Server(answer(200, { "X-Rsio-Position": "0" }, "one"), answer(200, headers, body), answer(410));
  assert.deepEqual(await collect(stream(URL_OF_NUMBERS, { type: "text", fetch: server.fetch })), ["one", "Grün", ""]);
});

test("a connection that breaks in a batch loses nothing and repeats nothing", async () => {
  const headers = { "Content-Encoding": "X-Rsio-LengthPrefixedElements", "X-Rsio-Position": "0" };
  const whole = batch("a", "b", "c");
  for (let cut = 0; cut < whole.length; cut += 1) {
    const server = new Server(broken(headers, whole.subarray(0, cut)), new TypeError("refused"), elements(0, "a", "b", "c"), answer(410));
    const clock = new Clock();
    const reading = collect(stream(URL_OF_NUMBERS, { type: "text", fetch: server.fetch, clock }));
    await settle();
    await clock.advance(200);
    assert.deepEqual(await reading, ["a", "b", "c"], `cut at ${cut}`);
  }
});

test("without positions a batch counts when it is complete", async () => {
  const headers = { "Content-Encoding": "X-Rsio-LengthPrefixedElements" };
  const server = new Server(broken(headers, batch("a"), batch("b").subarray(0, 3)), answer(200, headers, batch("a", "b")), answer(410));
  const clock = new Clock();
  const reading = collect(stream(URL_OF_NUMBERS, { type: "text", fetch: server.fetch, clock }));
  await settle();
  await clock.advance(100);
  assert.deepEqual(await reading, ["a", "b"]);
});

test("waits after a 204, and as long as Retry-After says", async () => {
  const server = new Server(answer(204), answer(204, { "Retry-After": "7" }), elements(0, "a"), answer(410));
  const clock = new Clock();
  const reading = collect(stream(URL_OF_NUMBERS, { type: "text", fetch: server.fetch, clock }));
  await settle();
  assert.equal(server.requests.length, 2);
  await clock.advance(500);
  assert.equal(server.requests.length, 3);
  await clock.advance(6999);
  assert.equal(server.requests.length, 3);
  await clock.advance(1);
  assert.deepEqual(await reading, ["a"]);
});

test("a break cancels with a request that outlives the page", async () => {
  const server = new Server(elements(0, "a", "b"));
  for await (const element of stream(URL_OF_NUMBERS, { type: "text", fetch: server.fetch, demand: 2 })) {
    assert.equal(element, "a");
    break;
  }
  await settle();
  const last = server.requests.at(-1);
  assert.equal(last.url, "http://server.example/s/secret/cancel");
  assert.deepEqual([last.method, last.keepalive], ["POST", true]);
});

test("an aborted signal ends the stream with its reason", async () => {
  const server = new Server();
  const controller = new AbortController();
  const reading = collect(stream(URL_OF_NUMBERS, { fetch: server.fetch, signal: controller.signal }));
  await settle();
  controller.abort(new RangeError("enough"));
  await assert.rejects(reading, RangeError);
  assert.ok(server.paths.at(-1).endsWith("/cancel"));
});

test("a page that goes cancels with a beacon", async () => {
  const server = new Server();
  const page = new EventTarget();
  const beacons = [];
  const reading = collect(stream(URL_OF_NUMBERS, { fetch: server.fetch, page, beacon: (url) => beacons.push(url) }));
  await settle();
  page.dispatchEvent(new Event("pagehide"));
  await assert.rejects(reading, ConnectionClosed);
  assert.deepEqual(beacons, ["http://server.example/s/secret/cancel"]);
  assert.ok(!server.paths.at(-1).endsWith("/cancel"));
});

test("errors say who must act", async () => {
  const failed = { "X-Rsio-Error": "true", "Content-Type": "text/plain" };
  const cases = [
    [[answer(500, failed, "out of stock\n")], PublisherFailed, "out of stock"],
    [[answer(403, {}, "no")], PublisherFailed, "no"],
    [[elements(5, "a")], ProtocolError, "5 follows 0"],
    [[answer(200, { "X-Rsio-Position": "x" }, "a")], ProtocolError, '"x"'],
    [[elements(0, "too long")], LimitExceeded, "limits.element"],
  ];
  for (const [answers, kind, text] of cases) {
    const server = new Server(...answers);
    const reading = collect(stream(URL_OF_NUMBERS, { fetch: server.fetch, limits: { element: 3 } }));
    await assert.rejects(reading, (error) => error instanceof kind && error.message.includes(text));
  }
});

test("a subscribe that is refused is an error", async () => {
  for (const [status, kind] of [[401, AuthRefused], [404, PublisherFailed]]) {
    const server = new Server(answer(status, status === 404 ? { "X-Rsio-Error": "true" } : {}, "no such publisher"));
    server.refusesFirst = true;
    await assert.rejects(collect(stream(URL_OF_NUMBERS, { fetch: server.fetch })), kind);
    assert.equal(server.requests.length, 1);
  }
});

test("gives up after seven attempts", async () => {
  const server = new Server(...Array.from({ length: 4 }, () => new TypeError("refused")), answer(502), answer(503), new TypeError("refused"));
  server.refusesFirst = true;
  const clock = new Clock();
  const reading = collect(stream(URL_OF_NUMBERS, { fetch: server.fetch, clock }));
  const rejected = assert.rejects(reading, (error) => error instanceof ConnectionLost && error.message.includes("http.origins"));
  await settle();
  await clock.advance(16_000);
  await rejected;
  assert.equal(server.requests.length, 7);
});

test("gives up if every answer breaks before its first element", async () => {
  const headers = { "Content-Encoding": "X-Rsio-LengthPrefixedElements", "X-Rsio-Position": "0" };
  const server = new Server(...Array.from({ length: 8 }, () => broken(headers)));
  const clock = new Clock();
  const rejected = assert.rejects(collect(stream(URL_OF_NUMBERS, { fetch: server.fetch, clock })), ConnectionLost);
  await settle();
  await clock.advance(16_000);
  await rejected;
  assert.equal(server.paths.filter((path) => path.startsWith("/s/secret?")).length, 7);
});

test("a token goes to the origin of the publisher alone", async () => {
  const server = new Server(answer(201, { Location: "https://other.example/s/secret" }), elements(0, "a"), answer(410));
  server.refusesFirst = true;
  await collect(stream(URL_OF_NUMBERS, { fetch: server.fetch, bearer: "token", credentials: "include" }));
  assert.deepEqual(server.requests.map(({ headers }) => headers.Authorization), ["Bearer token", undefined, undefined]);
  assert.deepEqual(server.requests.map(({ credentials }) => credentials), ["include", "omit", "omit"]);
});

test("wrong calls are refused at once", () => {
  for (const url of ["ws://server.example/p/x", "http://server.example", "http://server.example/p/x?request=1", "http://["]) {
    assert.throws(() => stream(url), UsageError, url);
  }
  for (const options of [{ batch: 1 }, { demand: 0 }, { type: "xml" }, { delivery: "push" }, { delivery: "events" }]) {
    assert.throws(() => stream(URL_OF_NUMBERS, options), UsageError, JSON.stringify(options));
  }
});

/** An EventSource that the test drives. */
class Events extends EventTarget {
  static last = null;
  readyState = 1;
  isClosed = false;

  constructor(url, options) {
    super();
    Object.assign(this, { url, options });
    Events.last = this;
  }

  send(id, text) {
    this.onmessage({ lastEventId: String(id), data: btoa(text) });
  }

  close() {
    this.isClosed = true;
  }
}

test("reads events, skips those that come twice, and renews the demand", async () => {
  const server = new Server(...Array.from({ length: 3 }, () => answer(200)));
  const reading = collect(
    stream(URL_OF_NUMBERS, { type: "text", demand: 2, delivery: "events", fetch: server.fetch, EventSource: Events, credentials: "include" }),
  );
  await settle();
  const events = Events.last;
  assert.equal(events.url, "http://server.example/s/secret/events");
  assert.deepEqual(events.options, { withCredentials: true });
  events.send(0, "a");
  await settle();
  events.send(0, "a");
  events.send(1, "b");
  await settle();
  assert.deepEqual(server.paths.slice(1), ["/s/secret/requestMore=1", "/s/secret/requestMore=1"]);
  assert.deepEqual(server.requests.slice(1).map(({ headers }) => headers["X-Rsio-Requested"]), ["3", "4"]);
  events.dispatchEvent(new Event("rsio-complete"));
  assert.deepEqual(await reading, ["a", "b"]);
  assert.ok(events.isClosed);
});

test("events end with the error of the publisher, a gap, or a browser that gives up", async () => {
  const ends = [
    [(events) => events.dispatchEvent(Object.assign(new Event("rsio-error"), { data: "out of stock" })), PublisherFailed],
    [(events) => events.send(3, "d"), ProtocolError],
    [(events) => (Object.assign(events, { readyState: 2 }).onerror(), undefined), ConnectionLost],
  ];
  for (const [end, kind] of ends) {
    const server = new Server();
    const reading = collect(stream(URL_OF_NUMBERS, { delivery: "events", fetch: server.fetch, EventSource: Events }));
    await settle();
    Object.assign(Events.last, { readyState: 0 }).onerror(); // connecting again is no end
    end(Events.last);
    await assert.rejects(reading, kind);
    assert.ok(Events.last.isClosed);
  }
});

test("a traceparent goes with the subscribe alone, and a malformed one is refused", async () => {
  const trace = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  const server = new Server(elements(0, "a"), answer(410));
  for await (const text of stream(URL_OF_NUMBERS, { type: "text", fetch: server.fetch, clock: new Clock(), traceparent: trace })) assert.equal(text, "a");
  assert.deepEqual(server.requests.map((request) => request.headers?.traceparent), [trace, undefined, undefined]);
  assert.throws(() => stream(URL_OF_NUMBERS, { traceparent: "00-1-2-3" }), UsageError);
});
