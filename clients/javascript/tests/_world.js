/** A world without a network and without time: a WebSocket whose server is the test, a clock that the test moves, a page. */

import { connect } from "../penstock.js";

/** Returns bytes from hexadecimal digits; blanks are ignored. */
export function bytes(hex) {
  return Uint8Array.from(Buffer.from(hex.replaceAll(" ", ""), "hex"));
}

export function hex(data) {
  return Buffer.from(data).toString("hex");
}

/** A clock that stands still until the test moves it. */
export class Clock {
  time = 0;
  #timers = new Map();
  #last = 0;

  now() {
    return this.time;
  }

  setTimeout(callback, delay) {
    this.#last += 1;
    this.#timers.set(this.#last, { at: this.time + delay, callback });
    return this.#last;
  }

  clearTimeout(timer) {
    this.#timers.delete(timer);
  }

  /** Move the time, and call each timer when it is due. */
  async advance(milliseconds) {
    const end = this.time + milliseconds;
    for (;;) {
      const due = [...this.#timers].filter(([, timer]) => timer.at <= end).sort((one, other) => one[1].at - other[1].at)[0];
      if (due === undefined) break;
      this.#timers.delete(due[0]);
      this.time = Math.max(this.time, due[1].at);
      due[1].callback();
      await settle();
    }
    this.time = end;
  }

  /** Stop the world for a time, as a browser freezes a page: due timers fire late, all at its end. */
  async freeze(milliseconds) {
    this.time += milliseconds;
    await this.advance(0);
  }

  get pending() {
    return this.#timers.size;
  }
}

/** Let all promises and microtasks run. */
export function settle() {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A WebSocket: what the client sends is in `sent`, and the test calls `open`, `say` and `lose`. */
export class FakeSocket extends EventTarget {
  readyState = 0;
  bufferedAmount = 0;
  closedWith = null;
  #sent = "";

  constructor(url, protocols) {
    super();
    this.url = url;
    this.protocols = protocols;
  }

  send(data) {
    this.#sent += hex(data);
  }

  /** Returns what was sent since the last call, in hexadecimal. */
  take() {
    const sent = this.#sent;
    this.#sent = "";
    return sent;
  }

  close(code) {
    if (this.closedWith === null) this.closedWith = code;
    this.readyState = 2;
  }

  open() {
    this.readyState = 1;
    this.dispatchEvent(new Event("open"));
  }

  /** The server sends a message: bytes in hexadecimal, or a text if `asText`. */
  say(message) {
    const data = typeof message === "string" ? bytes(message).buffer : message;
    this.dispatchEvent(Object.assign(new Event("message"), { data }));
  }

  sayText(text) {
    this.dispatchEvent(Object.assign(new Event("message"), { data: text }));
  }

  lose(code = 1006) {
    this.readyState = 3;
    this.dispatchEvent(Object.assign(new Event("close"), { code, reason: "" }));
  }
}

/** The sockets that a client opens, and the clock and the page that it lives with. */
export class World {
  clock = new Clock();
  page = new EventTarget();
  sockets = [];
  states = [];

  get options() {
    const { sockets } = this;
    class Socket extends FakeSocket {
      constructor(url, protocols) {
        super(url, protocols);
        sockets.push(this);
      }
    }
    return {
      WebSocket: Socket,
      clock: this.clock,
      page: this.page,
      random: () => 0.5,
      onState: (state) => this.states.push(state),
    };
  }

  get socket() {
    return this.sockets.at(-1);
  }

  /** Connect to a server whose hello has these bytes. The default lists keepalive, auth, content and requests. */
  async connect(options = {}, hello = "0200 04 01020307") {
    const connecting = connect("ws://localhost:1/", { ...this.options, ...options });
    connecting.catch(() => {});
    this.socket.open();
    this.socket.take();
    this.socket.say(hello);
    const connection = await connecting;
    return connection;
  }

  turn(kind) {
    this.page.dispatchEvent(Object.assign(new Event(kind), { persisted: true }));
  }
}

/** A subscriber that keeps its signals. `demand` is requested in onSubscribe. */
export class Recorder {
  signals = [];

  constructor(demand = 0) {
    this.demand = demand;
  }

  onSubscribe(subscription) {
    this.subscription = subscription;
    if (this.demand) subscription.request(this.demand);
  }

  onNext(element) {
    this.signals.push(["next", element instanceof Uint8Array ? hex(element) : element]);
  }

  onError(error) {
    this.error = error;
    this.signals.push(["error", error.constructor.name]);
  }

  onComplete() {
    this.signals.push(["complete"]);
  }
}
