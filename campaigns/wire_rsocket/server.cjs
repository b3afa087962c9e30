// What `penstock tck` needs, served by rsocket-js. Prints its port.
const net = require("net");
const core = require("rsocket-core");
const { Flowable, Single } = require("rsocket-flowable");
const Server = require("rsocket-tcp-server").default;
const { routeOf } = require("../interop_rsocket/js/payloads.cjs");

const HOST = "127.0.0.1";

// The library throws some errors of a connection where nobody can catch them.
process.on("uncaughtException", (error) => console.error(`${error}`));

function large(number) {
  const element = Buffer.alloc(200000);
  for (let word = 0; word < 50000; word++) {
    element.writeUInt32BE(number * 2 ** 24 + word, 4 * word);
  }
  return element;
}

// A stream of `count` elements, made as demand comes; at most 5,000 in one turn of the loop.
function elements(count, make, failure) {
  return new Flowable((subscriber) => {
    let next = 0, demand = 0, sending = false, over = false;
    const send = () => {
      sending = true;
      for (let turn = 0; demand > 0 && next < count && !over && turn < 5000; turn++) {
        demand--;
        subscriber.onNext({ data: Buffer.from(make(next++)) });
      }
      sending = false;
      if (over) return;
      if (next >= count) {
        over = true;
        if (failure) subscriber.onError(new Error(failure));
        else subscriber.onComplete();
      } else if (demand > 0) {
        sending = true;
        setImmediate(send);
      }
    };
    subscriber.onSubscribe({
      cancel: () => { over = true; },
      request: (n) => { demand += n; if (!sending) send(); },
    });
  });
}

function slow() {
  return new Flowable((subscriber) => {
    let timer;
    subscriber.onSubscribe({
      cancel: () => clearTimeout(timer),
      request: () => {
        timer = timer || setTimeout(() => {
          subscriber.onNext({ data: Buffer.from("late") });
          subscriber.onComplete();
        }, 250);
      },
    });
  });
}

const WORDS = ["one", "two", "three"];
const STREAMS = {
  numbers: () => elements(Infinity, () => "a number"),
  three: () => elements(3, (index) => WORDS[index]),
  one: () => elements(1, () => "one"),
  empty: () => elements(0),
  failing: () => elements(1, () => "one", "failed on purpose"),
  large: () => elements(5, large),
  slow,
};

// The route of a channel is in its first element, which is read here and put before the others.
function channel(payloads) {
  return new Flowable((subscriber) => {
    let source, demand = 0, left = Infinity, over = false, name;
    const waiting = [];
    let complete = false;
    const send = () => {
      while (demand > 0 && waiting.length && !over) {
        demand--;
        subscriber.onNext({ data: waiting.shift() });
      }
      if (complete && !waiting.length && !over) { over = true; subscriber.onComplete(); }
    };
    payloads.subscribe({
      onSubscribe(given) {
        source = given;
        subscriber.onSubscribe({
          cancel: () => { over = true; source.cancel(); },
          request: (n) => { demand += n; send(); },
        });
        source.request(1);
      },
      onNext(payload) {
        if (name === undefined) {
          name = routeOf(payload);
          if (!["channel", "pair", "greedy"].includes(name)) {
            over = true;
            subscriber.onError(new Error("no such route"));
            return;
          }
          left = name === "pair" ? 2 : Infinity;
          source.request({ channel: 3, pair: 1, greedy: 2 ** 30 - 1 }[name]);
        } else if (name !== "pair") {
          source.request(name === "greedy" ? 2 ** 30 : 1);
        }
        if (name !== "greedy") waiting.push(Buffer.from(payload.data || []));
        if (--left === 0) complete = true;
        send();
      },
      onComplete() { complete = true; send(); },
      onError() { over = true; },
    });
  });
}

const handler = {
  requestResponse(payload) {
    return routeOf(payload) === "echo"
      ? Single.of({ data: payload.data || Buffer.alloc(0) })
      : Single.error(new Error("no such route"));
  },
  fireAndForget() {},
  requestStream(payload) {
    const make = STREAMS[routeOf(payload)];
    return make ? make() : Flowable.error(new Error("no such route"));
  },
  requestChannel: channel,
  metadataPush() { return Single.of(undefined); },
};

const probe = net.createServer().listen(0, HOST, () => {
  const port = probe.address().port;
  probe.close(() => {
    const transport = new Server({ host: HOST, port }, core.BufferEncoders);
    new core.RSocketServer({
      transport,
      getRequestHandler: (_socket, setup) => {
        if (`${setup.data || ""}` === "refuse me") throw new Error("refused");
        return handler;
      },
    }).start();
    const wait = () => {
      const socket = net.connect(port, HOST, () => { socket.destroy(); console.log(port); });
      socket.on("error", () => setTimeout(wait, 50));
    };
    wait();
  });
});
