// The checks of a server with rsocket-js 0.0.27, one for each row, in Node.js and in a page.
// `ask(makeTransport, row)` asks over a transport, and calls `row` with the name of a row and a result.
const core = require("rsocket-core");
const { named, numbers, one } = require("./payloads.cjs");
const { run, same } = require("./run.cjs");

const { MESSAGE_RSOCKET_AUTHENTICATION } = core;
const DEMANDS = [1, 7, 2, 30];

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

function connect(transport, options = {}) {
  const metadata = core.encodeCompositeMetadata([
    [MESSAGE_RSOCKET_AUTHENTICATION, core.encodeBearerAuthMetadata("token")],
  ]);
  return one(new core.RSocketClient({
    transport,
    setup: {
      dataMimeType: "application/octet-stream",
      metadataMimeType: core.MESSAGE_RSOCKET_COMPOSITE_METADATA.string,
      keepAlive: 2000, lifetime: 20000,
      payload: { data: Buffer.from("hi"), metadata },
    },
    ...options,
  }).connect());
}

// Sends 40 requests, as many as each lease permits: this version keeps none until there is one.
function askWithLeases(transport) {
  const most = 40;
  let sent = 0, answered = 0;
  return new Promise((done, fail) => {
    let peer, given;
    const send = () => {
      for (let left = given.allowedRequests; left > 0 && sent < most; left--, sent++) {
        one(peer.requestResponse(named("echo", Buffer.from("x")))).then(() => {
          answered++;
          if (answered === most) { peer.close(); done(true); }
        }, fail);
      }
    };
    const receiver = (leases) => leases.subscribe({
      onSubscribe(subscription) { subscription.request(0x7fffffff); },
      // Later: the library counts a lease only after it has told it.
      onNext(lease) { given = lease; if (peer) setTimeout(send, 0); },
      onComplete() {},
      onError: fail,
    });
    connect(transport, { leases: () => new core.Leases().receiver(receiver) }).then((opened) => {
      peer = opened;
      if (given) send();
    }, fail);
  });
}

// `makeTransport` is called for each connection.
async function ask(makeTransport, row) {
  const peer = await connect(makeTransport());
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
    leases: () => askWithLeases(makeTransport()),
  };
  await run(rows, row);
}

module.exports = { ask, connect };
