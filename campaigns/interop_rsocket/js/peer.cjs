// rsocket-js 0.0.27 as a server and as a client: `peer.cjs server SCHEME`,
// `peer.cjs lease-server SCHEME`, `peer.cjs client SCHEME PORT`. The rows and the routes are those of __main__.py.
const net = require("net");
const core = require("rsocket-core");
const { Flowable, Single } = require("rsocket-flowable");
const TcpClient = require("rsocket-tcp-client").default;
const TcpServer = require("rsocket-tcp-server").default;
const WsClient = require("rsocket-websocket-client").default;
const WsServer = require("rsocket-websocket-server").default;
const WebSocket = require("ws");
const { freePort } = require("./common.cjs");
const { ask, numbers } = require("./rows.cjs");

const HOST = "127.0.0.1";
const [role, scheme, port] = process.argv.slice(2);
const { BufferEncoders, MESSAGE_RSOCKET_ROUTING } = core;
let seen = "nothing";

function routeOf(payload) {
  for (const entry of core.decodeCompositeMetadata(payload.metadata)) {
    if (entry.mimeType === MESSAGE_RSOCKET_ROUTING.string) {
      return core.decodeRoutes(entry.content).next().value;
    }
  }
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

async function main() {
  if (role === "server") await serve({});
  else if (role === "lease-server") await serve({ leases });
  else {
    await ask(transportTo, (name, result) => console.log(`${name}\t${result}`));
    process.exit(0);
  }
}

main();
