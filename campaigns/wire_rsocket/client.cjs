// What `penstock tck --client` checks, by rsocket-js: a client that does its tasks at a port,
// connection after connection.
const core = require("rsocket-core");
const { Flowable, Single } = require("rsocket-flowable");
const Client = require("rsocket-tcp-client").default;
const { named, numbers, one } = require("../interop_rsocket/js/payloads.cjs");

const WORDS = ["one", "two", "three", "four", "five"];
const LARGE = Buffer.from(Array.from({ length: 200000 }, (_, index) => index % 251));
const UNBOUNDED = 2 ** 31 - 1;
const port = Number(process.argv[2]);

// The library throws some errors of a connection where nobody can catch them.
process.on("uncaughtException", (error) => console.error(`${error}`));
process.on("unhandledRejection", (error) => console.error(`${error}`));

// The text of an error of the server is in its source.
const textOf = (error) => (error.source && error.source.message) || error.message;

// Reads in portions; cancels after `most` elements.
const read = (flowable, first, portion, most = Infinity) => new Promise((done) => {
  const got = [];
  let subscription;
  const end = (word) => done(`elements ${got.join(",")} ${word}`);
  flowable.subscribe({
    onSubscribe(given) { subscription = given; given.request(first); },
    onNext({ data }) {
      got.push((data || "").toString());
      if (got.length === most) { subscription.cancel(); end("cancelled"); return; }
      if (portion && got.length % portion === 0) subscription.request(portion);
    },
    onComplete: () => end("complete"),
    onError: (error) => end(`error ${textOf(error)}`),
  });
});

async function value(peer, data) {
  try {
    const found = await one(peer.requestResponse(named("echo", data)));
    return found && found.data != null ? `value ${found.data}` : "empty";
  } catch (error) {
    return `error ${textOf(error)}`;
  }
}

async function perform(peer, name, rest) {
  const count = Number(rest);
  switch (name) {
    case "request": return value(peer, Buffer.from(rest));
    case "large": return value(peer, LARGE);
    case "stream": return read(peer.requestStream(named("numbers")), count, count);
    case "unbounded": return read(peer.requestStream(named("numbers")), UNBOUNDED, 0);
    case "cancel": return read(peer.requestStream(named("numbers")), 2 * count, 2 * count, count);
    case "channel": {
      const make = (index) => (
        index ? { data: Buffer.from(WORDS[index]) } : named("channel", Buffer.from(WORDS[0]))
      );
      return read(peer.requestChannel(numbers(WORDS.length, make)), 2, 2);
    }
    case "forget": peer.fireAndForget(named("echo", Buffer.from(rest))); return "done";
    case "push":
      try { await one(peer.metadataPush({ metadata: Buffer.from(rest) })); } catch (error) {
        console.error(`${error}`);
        return "unsupported";
      }
      return "done";
    case "nothing": case "serve": return "done";
    default: return "unsupported";
  }
}

const responder = {
  requestResponse: (payload) => Single.of({ data: payload.data || Buffer.alloc(0) }),
  requestStream: () => numbers(Infinity, (number) => ({ data: Buffer.from(`${number}`) })),
  fireAndForget() {},
  requestChannel: () => Flowable.error(new Error("no channel")),
  metadataPush: () => Single.of(undefined),
};

async function connect() {
  const transport = new Client({ host: "127.0.0.1", port }, core.BufferEncoders);
  const peer = await one(new core.RSocketClient({
    transport,
    responder,
    setup: {
      dataMimeType: "application/octet-stream",
      metadataMimeType: core.MESSAGE_RSOCKET_COMPOSITE_METADATA.string,
      keepAlive: 500, lifetime: 10000,
    },
  }).connect());
  const closed = new Promise((done) => peer.connectionStatus().subscribe({
    onNext: ({ kind }) => { if (kind === "CLOSED" || kind === "ERROR") done(); },
    onSubscribe: (subscription) => subscription.request(UNBOUNDED),
    onComplete: done, onError: done,
  }));
  const conversation = (async () => {
    const task = `${(await one(peer.requestResponse(named("tck")))).data}`;
    const [name, rest] = [task.split(" ")[0], task.slice(task.indexOf(" ") + 1)];
    const outcome = await perform(peer, name, rest);
    await one(peer.requestResponse(named("tck-done", Buffer.from(outcome))));
    await closed;
  })();
  await Promise.race([conversation, closed]);
  peer.close();
}

(async () => {
  for (;;) {
    try { await connect(); } catch (error) { console.error(`${error}`); }
    await new Promise((done) => setTimeout(done, 20));
  }
})();
