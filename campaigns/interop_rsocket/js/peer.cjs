// rsocket-js 0.0.27 as a server and as a client: `peer.cjs server SCHEME`,
// `lease-server SCHEME`, `client SCHEME PORT`, `resume-client SCHEME PORT`. The rows and the routes are those of __main__.py.
const net = require("net");
const { randomBytes } = require("crypto");
const core = require("rsocket-core");
const { Flowable, Single } = require("rsocket-flowable");
const TcpClient = require("rsocket-tcp-client").default;
const TcpServer = require("rsocket-tcp-server").default;
const WsClient = require("rsocket-websocket-client").default;
const WsServer = require("rsocket-websocket-server").default;
const WebSocket = require("ws");
const { Count, freePort } = require("./common.cjs");
const { named, numbers, one, routeOf } = require("./payloads.cjs");
const { ask, connect } = require("./rows.cjs");

const HOST = "127.0.0.1";
const [role, scheme, port] = process.argv.slice(2);
const { BufferEncoders } = core;
let seen = "nothing";

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

// 3 requests at a time, again after a second.
const leases = () => new core.Leases().sender(() => new Flowable((subscriber) => {
  let timer;
  const send = () => subscriber.onNext(new core.Lease(10000, 3));
  subscriber.onSubscribe({
    cancel: () => clearInterval(timer),
    request: () => {
      if (timer) return;
      send();
      timer = setInterval(send, 1000);
    },
  });
}));

async function serve(options) {
  const free = await freePort();
  const Server = scheme === "ws" ? WsServer : TcpServer;
  const transport = new Server({ host: HOST, port: free }, BufferEncoders);
  new core.RSocketServer({ transport, getRequestHandler: handler, ...options }).start();
  const wait = () => {
    const socket = net.connect(free, HOST, () => { socket.destroy(); console.log(free); });
    socket.on("error", () => setTimeout(wait, 50));
  };
  wait();
}

const transportTo = () => scheme === "ws"
  ? new WsClient({ url: `ws://${HOST}:${port}`, wsCreator: (url) => new WebSocket(url) }, BufferEncoders)
  : new TcpClient({ host: HOST, port: Number(port) }, BufferEncoders);

// Its transport opens a connection again when the program says so.
async function askResumable() {
  const transport = new core.RSocketResumableTransport(
    transportTo,
    { bufferSize: 1 << 30, resumeToken: Buffer.from(randomBytes(16).toString("hex")), sessionDurationSeconds: 60 },
    BufferEncoders);
  let wasConnected = false;
  transport.connectionStatus().subscribe({
    onSubscribe(subscription) { subscription.request(Number.MAX_SAFE_INTEGER); },
    onNext({ kind, error }) {
      if (kind === "CONNECTED") wasConnected = true;
      if (kind === "ERROR") failures.push(`connection: ${error}`);
      if (kind === "NOT_CONNECTED" && wasConnected) setTimeout(() => transport.connect(), 5);
    },
  });
  const stream = new Count(), channel = new Count(), answers = new Count(), failures = [];
  const peer = await connect(transport);
  const read = (name, flowable, count, demand) => {
    let source;
    flowable.subscribe({
      onSubscribe(given) { source = given; given.request(demand); },
      onNext({ data }) { count.note(Number(data.toString().trim())); source.request(1); },
      onComplete() {},
      onError(failed) { failures.push(`${name}: ${failed}`); },
    });
  };
  read("stream", peer.requestStream(named("count/2000000000")), stream, 64);
  const endless = numbers(2 ** 31, (n) => named("same", Buffer.from(`${n}`)));
  read("channel", peer.requestChannel(endless), channel, 8);
  let isOver = false;
  const requests = (async () => {
    for (let n = 0; !isOver; n++) {
      const data = Buffer.from(`${n}${" ".repeat((n * 997) % 20000)}`);
      const { data: answer } = await one(peer.requestResponse(named("echo", data)));
      answers.note(Number(answer.toString().trim()));
    }
  })().catch((failed) => failures.push(`answers: ${failed}`));
  process.stdin.once("data", () => {
    isOver = true;
    console.log(`stream ${stream}, channel ${channel}, answers ${answers} [${failures}]`);
    process.exit(0);
  });
  await requests;
}

async function main() {
  if (role === "server") await serve({});
  else if (role === "lease-server") await serve({ leases });
  else if (role === "resume-client") await askResumable();
  else {
    await ask(transportTo, (name, result) => console.log(`${name}\t${result}`));
    process.exit(0);
  }
}

main();
