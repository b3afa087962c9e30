// The checks of a server with rsocket-js 0.0.27, one for each row, in Node.js and in a page.
// `ask(transport, row)` asks over a transport, and calls `row` with the name of a row and a result.
const core = require("rsocket-core");
const { Flowable } = require("rsocket-flowable");
const { run, same } = require("./run.cjs");

const { MESSAGE_RSOCKET_ROUTING, MESSAGE_RSOCKET_AUTHENTICATION } = core;
const DEMANDS = [1, 7, 2, 30];

function named(name, data = Buffer.alloc(0)) {
  const metadata = core.encodeCompositeMetadata([
    [MESSAGE_RSOCKET_ROUTING, core.encodeRoute(name)],
  ]);
  return { data, metadata };
}

// A stream of payloads, made as demand comes.
function numbers(count, make) {
  return new Flowable((subscriber) => {
    let next = 0, demand = 0, sending = false, over = false;
    subscriber.onSubscribe({
      cancel: () => { over = true; },
      request: (n) => {
        demand += n;
        if (sending) return;
        sending = true;
        for (; demand > 0 && next < count && !over; demand--) subscriber.onNext(make(next++));
        sending = false;
        if (next === count && !over) { over = true; subscriber.onComplete(); }
      },
    });
  });
}

const one = (single) => new Promise((done, fail) => single.subscribe({
  onComplete: done, onError: fail, onSubscribe() {},
}));

// Read with demands of different sizes, each when the last one is used up; cancel after `most`.
const all = (flowable, most = Infinity) => new Promise((done, fail) => {
  const got = [];
  let subscription, left = 0, turn = 0;
  const more = () => {
    left = DEMANDS[turn++ % DEMANDS.length];
    subscription.request(left);
  };
  flowable.subscribe({
    onSubscribe(given) { subscription = given; more(); },
    onNext({ data }) {
      if (left-- === 0) { fail(new Error("an element without demand")); return; }
      got.push(data.toString());
      if (got.length === most) { subscription.cancel(); done(got); return; }
      if (left === 0) more();
    },
    onComplete: () => done(got),
    onError: fail,
  });
});

async function ask(transport, row) {
  const metadata = core.encodeCompositeMetadata([
    [MESSAGE_RSOCKET_AUTHENTICATION, core.encodeBearerAuthMetadata("token")],
  ]);
  const peer = await one(new core.RSocketClient({
    transport,
    setup: {
      dataMimeType: "application/octet-stream",
      metadataMimeType: core.MESSAGE_RSOCKET_COMPOSITE_METADATA.string,
      keepAlive: 2000, lifetime: 20000,
      payload: { data: Buffer.from("hi"), metadata },
    },
  }).connect());
  const text = async (name, data) => (await one(peer.requestResponse(named(name, data)))).data;
  const rows = {
    "request-response": async () => (await text("echo", Buffer.from("x"))).toString() === "x",
    fragments: async () => {
      const data = Buffer.alloc(256000, 7);
      return (await text("echo", data)).equals(data);
    },
    error: async () => {
      try { await text("fail"); } catch (failed) { return `${failed.message}`.includes("boom"); }
      return false;
    },
    "fire-and-forget": async () => {
      peer.fireAndForget(named("note", Buffer.alloc(10000)));
      for (let tries = 0; tries < 100; tries++) {
        if ((await text("seen")).toString() === "10000") return true;
      }
      return false;
    },
    stream: async () =>
      same(await all(peer.requestStream(named("count/2000"))), (n) => `${n}`, 2000),
    cancel: async () =>
      (await all(peer.requestStream(named("count/100000")), 5)).length === 5
      && (await text("echo", Buffer.from("x"))).toString() === "x",
    channel: async () => same(
      await all(peer.requestChannel(numbers(50, (n) => named("double", Buffer.from(`${n}`))))),
      (n) => `${n}${n}`, 50),
  };
  await run(rows, row);
}

module.exports = { ask, numbers };
