// rsocket-js as a server and as a client: `peer.cjs server SCHEME`, `peer.cjs client SCHEME PORT`.
// The rows and the routes are those of __main__.py.
const net = require("net");
const core = require("rsocket-core");
const { Flowable, Single } = require("rsocket-flowable");
const TcpClient = require("rsocket-tcp-client").default;
const TcpServer = require("rsocket-tcp-server").default;
const WsClient = require("rsocket-websocket-client").default;
const WsServer = require("rsocket-websocket-server").default;
const WebSocket = require("ws");

const HOST = "127.0.0.1";
const [role, scheme, port] = process.argv.slice(2);
const { BufferEncoders, MESSAGE_RSOCKET_ROUTING, MESSAGE_RSOCKET_AUTHENTICATION } = core;
let seen = "nothing";

function routeOf(payload) {
  for (const entry of core.decodeCompositeMetadata(payload.metadata)) {
    if (entry.mimeType === MESSAGE_RSOCKET_ROUTING.string) {
      return core.decodeRoutes(entry.content).next().value;
    }
  }
}

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

const number = (n) => ({ data: Buffer.from(`${n}`) });

function handler() {
  return {
    requestResponse(payload) {
      switch (routeOf(payload)) {
        case "fail": return Single.error(new Error("boom"));
        case "seen": return Single.of({ data: Buffer.from(seen) });
        case "type": return Single.error(new Error("a server is not told the types"));
        default: return Single.of({ data: payload.data || Buffer.alloc(0) });
      }
    },
    fireAndForget(payload) { seen = `${payload.data.length}`; },
    requestStream(payload) { return numbers(Number(routeOf(payload).split(".").pop()), number); },
    requestChannel(payloads) {
      return payloads.map(({ data }) => ({ data: Buffer.concat([data, data]) }));
    },
    metadataPush() { return Single.of(undefined); },
  };
}

function serve() {
  const probe = net.createServer().listen(0, HOST, () => {
    const free = probe.address().port;
    probe.close(() => {
      const Server = scheme === "ws" ? WsServer : TcpServer;
      const transport = new Server({ host: HOST, port: free }, BufferEncoders);
      const server = new core.RSocketServer({
        transport,
        getRequestHandler: handler,
      });
      server.start();
      const wait = () => {
        const socket = net.connect(free, HOST, () => { socket.destroy(); console.log(free); });
        socket.on("error", () => setTimeout(wait, 50));
      };
      wait();
    });
  });
}

const one = (single) => new Promise((done, fail) => single.subscribe({
  onComplete: done, onError: fail, onSubscribe() {},
}));

const all = (flowable, demand, most = Infinity) => new Promise((done, fail) => {
  const got = [];
  let subscription, left = demand;
  flowable.subscribe({
    onSubscribe(given) { subscription = given; given.request(demand); },
    onNext({ data }) {
      got.push(data.toString());
      if (got.length === most) { subscription.cancel(); done(got); return; }
      if (--left === 0) { left = demand; subscription.request(demand); }
    },
    onComplete: () => done(got),
    onError: fail,
  });
});

async function ask() {
  const metadata = core.encodeCompositeMetadata([
    [MESSAGE_RSOCKET_AUTHENTICATION, core.encodeBearerAuthMetadata("token")],
  ]);
  const transport = scheme === "ws"
    ? new WsClient({ url: `ws://${HOST}:${port}`, wsCreator: (url) => new WebSocket(url) }, BufferEncoders)
    : new TcpClient({ host: HOST, port: Number(port) }, BufferEncoders);
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
  const same = (got, make, count) =>
    JSON.stringify(got) === JSON.stringify(Array.from({ length: count }, (_, n) => make(n)));
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
      same(await all(peer.requestStream(named("count/2000")), 7), (n) => `${n}`, 2000),
    cancel: async () =>
      (await all(peer.requestStream(named("count/100000")), 16, 5)).length === 5
      && (await text("echo", Buffer.from("x"))).toString() === "x",
    channel: async () => same(
      await all(peer.requestChannel(numbers(50, (n) => named("double", Buffer.from(`${n}`)))), 5),
      (n) => `${n}${n}`, 50),
  };
  for (const [name, row] of Object.entries(rows)) {
    let timer;
    const late = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error("no answer in 10 s")), 10000); });
    try {
      console.log(`${name}\t${(await Promise.race([row(), late])) ? "ok" : "wrong answer"}`);
    } catch (failed) {
      console.log(`${name}\t${failed}`.replace(/\n/g, " "));
    }
    clearTimeout(timer);
  }
  process.exit(0);
}

role === "server" ? serve() : ask();
