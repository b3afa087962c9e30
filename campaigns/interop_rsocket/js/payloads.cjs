// Payloads with a route, and streams of them, with rsocket-js 0.0.27.
const core = require("rsocket-core");
const { Flowable } = require("rsocket-flowable");

function named(name, data = Buffer.alloc(0)) {
  const metadata = core.encodeCompositeMetadata([
    [core.MESSAGE_RSOCKET_ROUTING, core.encodeRoute(name)],
  ]);
  return { data, metadata };
}

// The route of a payload; undefined without one.
function routeOf(payload) {
  for (const entry of core.decodeCompositeMetadata(payload.metadata || Buffer.alloc(0))) {
    if (entry.mimeType === core.MESSAGE_RSOCKET_ROUTING.string) {
      return core.decodeRoutes(entry.content).next().value;
    }
  }
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

module.exports = { named, numbers, one, routeOf };
