// The checks of a server with rsocket-js 1.0.0-alpha, one for each row, in Node.js and in a page.
// `ask(makeTransport, row)` asks over a transport, and calls `row` with the name of a row and a result.
const core = require("rsocket-core-alpha");
const meta = require("rsocket-composite-metadata-alpha");
const { run, same } = require("./run.cjs");

const { MESSAGE_RSOCKET_ROUTING, MESSAGE_RSOCKET_AUTHENTICATION } = meta.WellKnownMimeType;
const DEMANDS = [1, 7, 2, 30];

function named(name, data = Buffer.alloc(0)) {
  const metadata = meta.encodeCompositeMetadata([
    [MESSAGE_RSOCKET_ROUTING, meta.encodeRoute(name)],
  ]);
  return { data, metadata };
}

function routeOf(payload) {
  for (const entry of meta.decodeCompositeMetadata(payload.metadata)) {
    if (entry.mimeType === MESSAGE_RSOCKET_ROUTING.string) {
      return meta.decodeRoutes(entry.content).next().value;
    }
  }
}

const setup = (metadata, data) => ({
  dataMimeType: "application/octet-stream",
  metadataMimeType: "message/x.rsocket.composite-metadata.v0",
  keepAlive: 2000, lifetime: 20000,
  payload: { data, metadata },
});

const credentials = (token) => meta.encodeCompositeMetadata([
  [MESSAGE_RSOCKET_AUTHENTICATION, meta.encodeBearerAuthMetadata(token)],
]);

const answerOf = (peer, payload) => new Promise((done, fail) => peer.requestResponse(payload, {
  onNext: ({ data }) => done(data || Buffer.alloc(0)),
  onComplete: () => done(undefined),
  onError: fail,
  onExtension() {},
}));

// Sends elements as demand comes: a part of what the requester of a channel answers to.
function sender(count, make) {
  let next = 1, demand = 0, over = false;
  return {
    to: undefined,
    request(n) {
      demand += n;
      for (; demand > 0 && next < count && !over; demand--) this.to.onNext(make(next++), next === count);
      over ||= next === count;
    },
    cancel() { over = true; },
  };
}

// Read with demands of different sizes, each when the last one is used up; cancel after `most`.
// `open(demand, receiver)` opens a stream or a channel.
const all = (open, most = Infinity) => new Promise((done, fail) => {
  const got = [];
  let turn = 1, left = DEMANDS[0];
  const stream = open(left, {
    onNext({ data }, isComplete) {
      if (left-- === 0) { fail(new Error("an element without demand")); return; }
      got.push(data.toString());
      if (isComplete) { done(got); return; }
      if (got.length === most) { stream.cancel(); done(got); return; }
      if (left === 0) {
        left = DEMANDS[turn++ % DEMANDS.length];
        stream.request(left);
      }
    },
    onComplete: () => done(got),
    onError: fail,
    onExtension() {},
  });
});

async function connect(transport, options = {}) {
  return new core.RSocketConnector({
    transport,
    setup: setup(credentials("token"), Buffer.from("hi")),
    fragmentation: { maxOutboundFragmentSize: 4096 },
    responder: {
      requestResponse(payload, answer) {
        answer.onNext({ data: Buffer.from(`hello ${payload.data}`) }, true);
        return { cancel() {}, onExtension() {} };
      },
    },
    ...options,
  }).connect();
}

// `makeTransport` is called for each connection.
async function ask(makeTransport, row) {
  const peer = await connect(makeTransport());
  const text = (name, data) => answerOf(peer, named(name, data));
  const rows = {
    "request-response": async () => (await text("echo", Buffer.from("x"))).toString() === "x",
    fragments: async () => {
      const data = Buffer.alloc(256000, 7);
      return (await text("echo", data)).equals(data);
    },
    error: async () => {
      try { await text("fail"); } catch (failed) {
        return failed.message.includes("boom") && failed.code === core.ErrorCodes.APPLICATION_ERROR;
      }
      return false;
    },
    "fire-and-forget": async () => {
      await new Promise((onComplete, onError) =>
        peer.fireAndForget(named("note", Buffer.alloc(10000)), { onComplete, onError }));
      for (let tries = 0; tries < 100; tries++) {
        if ((await text("seen")).toString() === "10000") return true;
      }
      return false;
    },
    stream: async () => same(
      await all((demand, to) => peer.requestStream(named("count/2000"), demand, to)),
      (n) => `${n}`, 2000),
    cancel: async () =>
      (await all((demand, to) => peer.requestStream(named("count/100000"), demand, to), 5)).length === 5
      && (await text("echo", Buffer.from("x"))).toString() === "x",
    channel: async () => same(
      await all((demand, to) => {
        const sent = sender(50, (n) => ({ data: Buffer.from(`${n}`) }));
        sent.to = peer.requestChannel(named("double", Buffer.from("0")), demand, false,
          { ...to, request: (n) => sent.request(n), cancel: () => sent.cancel() });
        return sent.to;
      }),
      (n) => `${n}${n}`, 50),
    leases: async () => {
      // More at once than penstock permits before it renews the lease.
      const leased = await connect(makeTransport(), { lease: { maxPendingRequests: 100 } });
      const found = await Promise.all(Array.from(
        { length: 40 }, (_, n) => answerOf(leased, named("echo", Buffer.from(`${n}`)))));
      leased.close();
      return found.length === 40;
    },
    "asks back": async () => (await text("ask-back")).toString() === "hello penstock",
  };
  await run(rows, row);
}

module.exports = { answerOf, ask, connect, named, routeOf };
