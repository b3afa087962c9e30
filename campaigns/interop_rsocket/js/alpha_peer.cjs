// rsocket-js 1.0.0-alpha as a server and as a client: `alpha_peer.cjs server SCHEME`,
// `alpha_peer.cjs client SCHEME PORT`; `resume-server SCHEME` and `resume-client SCHEME PORT` for
// connections that are cut. The rows and the routes are those of __main__.py and _resume.py.
const { randomBytes } = require("crypto");
const core = require("rsocket-core-alpha");
const { TcpClientTransport } = require("rsocket-tcp-client-alpha");
const { TcpServerTransport } = require("rsocket-tcp-server-alpha");
const { WebsocketClientTransport } = require("rsocket-websocket-client-alpha");
const { WebsocketServerTransport } = require("rsocket-websocket-server-alpha");
const WebSocket = require("ws");
const { Count, freePort } = require("./common.cjs");
const { answerOf, ask, connect, named, routeOf } = require("./alpha_rows.cjs");

const HOST = "127.0.0.1";
const [role, scheme, port] = process.argv.slice(2);
let seen = "nothing";

const NOTHING = { cancel() {}, onExtension() {} };

// A stream of `count` numbers, as demand comes.
function numbers(count, demand, to) {
  let next = 0, left = 0, sending = false, over = false;
  const stream = {
    request(n) {
      left += n;
      if (sending) return;
      sending = true;
      for (; left > 0 && next < count && !over; left--) {
        to.onNext({ data: Buffer.from(`${next++}`) }, next === count);
      }
      sending = false;
      over ||= next === count;
    },
    cancel() { over = true; },
    onExtension() {},
  };
  stream.request(demand);
  return stream;
}

// Answers each element of a channel with what `make` makes of it, with a demand of 4.
function answering(first, demand, isComplete, to, make) {
  const waiting = [first];
  let left = demand, over = isComplete, isEnded = false;
  const send = () => {
    while (waiting.length && left > 0 && !isEnded) {
      left--;
      const element = { data: make(waiting.shift().data) };
      isEnded = over && !waiting.length;
      to.onNext(element, isEnded);
      if (!over) to.request(1);
    }
    if (over && !waiting.length && !isEnded) { isEnded = true; to.onComplete(); }
  };
  const channel = {
    onNext(payload, isLast) { over ||= isLast; waiting.push(payload); send(); },
    onComplete() { over = true; send(); },
    onError() { isEnded = true; },
    onExtension() {},
    request(n) { left += n; send(); },
    cancel() { isEnded = true; },
  };
  if (!over) to.request(3);
  send();
  return channel;
}

function handlerOf({ dataMimeType }, peer) {
  return {
    requestResponse(payload, answer) {
      const data = (found) => answer.onNext({ data: found }, true);
      switch (routeOf(payload)) {
        case "fail": answer.onError(new Error("boom")); break;
        case "seen": data(Buffer.from(seen)); break;
        case "type": data(Buffer.from(dataMimeType)); break;
        case "ask-back":
          answerOf(peer, named("hello", Buffer.from("rsocket-js"))).then(data, (e) => answer.onError(e));
          break;
        default: data(payload.data || Buffer.alloc(0));
      }
      return NOTHING;
    },
    fireAndForget(payload, done) {
      seen = `${payload.data.length}`;
      done.onComplete();
      return NOTHING;
    },
    requestStream(payload, demand, to) {
      return numbers(Number(routeOf(payload).split(".").pop()), demand, to);
    },
    requestChannel(payload, demand, isComplete, to) {
      const make = routeOf(payload) === "double" ? (data) => Buffer.concat([data, data]) : (data) => data;
      return answering(payload, demand, isComplete, to, make);
    },
  };
}

async function serve(options) {
  const free = await freePort();
  const transport = scheme === "ws"
    ? new WebsocketServerTransport({ host: HOST, port: free })
    : new TcpServerTransport({ listenOptions: { host: HOST, port: free } });
  await new core.RSocketServer({
    transport,
    acceptor: { accept: async (setup, peer) => handlerOf(setup, peer) },
    ...options,
  }).bind();
  console.log(free);
}

const transportTo = () => scheme === "ws"
  ? new WebsocketClientTransport({ url: `ws://${HOST}:${port}`, wsCreator: (url) => new WebSocket(url) })
  : new TcpClientTransport({ connectionOptions: { host: HOST, port: Number(port) } });

async function askResumable() {
  const token = Buffer.from(randomBytes(16).toString("hex"));
  const peer = await connect(transportTo(), {
    resume: {
      tokenGenerator: () => token,
      reconnectFunction: () => new Promise((done) => setTimeout(done, 5)),
    },
  });
  const stream = new Count(), channel = new Count(), answers = new Count(), failures = [];
  const receiver = (name, count, source) => ({
    onNext({ data }) { count.note(Number(data.toString().trim())); source().request(1); },
    onComplete() {},
    onError(failed) { failures.push(`${name}: ${failed}`); },
    onExtension() {},
  });
  const numbersRead = peer.requestStream(
    named("count/2000000000"), 64, receiver("stream", stream, () => numbersRead));
  let next = 1;
  const same = peer.requestChannel(named("same", Buffer.from("0")), 8, false, {
    ...receiver("channel", channel, () => same),
    request(n) { for (; n > 0; n--) same.onNext({ data: Buffer.from(`${next++}`) }, false); },
    cancel() {},
  });
  let isOver = false;
  const requests = (async () => {
    for (let n = 0; !isOver; n++) {
      const data = Buffer.from(`${n}${" ".repeat((n * 997) % 20000)}`);
      answers.note(Number((await answerOf(peer, named("echo", data))).toString().trim()));
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
  // Long: if a client resumes before its old connection is seen to end, the time runs on, and ends
  // the session that was resumed, without a word to the client.
  else if (role === "resume-server") await serve({ resume: { sessionTimeout: 3600000 } });
  else if (role === "resume-client") await askResumable();
  else {
    await ask(transportTo, (name, result) => console.log(`${name}\t${result}`));
    process.exit(0);
  }
}

main();
