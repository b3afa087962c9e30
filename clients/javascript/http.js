/**
 * Streams of Penstock over HTTP, for pages, workers and Node: `fetch` with a streamed batch, or `EventSource`. Demand all the way.
 *
 * Rules of this module:
 *
 * - Each request says which elements are here and how many were requested in all. So a request that is repeated loses nothing and repeats
 *   nothing. A server that sends no positions is one of the draft: an answer of it counts when it is complete.
 * - Credentials go to the origin of the publisher's URL alone.
 * - A page that goes cancels its streams with `sendBeacon`: the server need not wait for its own time-out.
 * - Every buffer has a bound: `demand` elements, each of at most `limits.element` bytes.
 */

import { AuthRefused, ConnectionClosed, ConnectionLost, LimitExceeded, ProtocolError, PublisherFailed, UsageError } from "./penstock.js";

/** Every bound of a stream, with its default. */
export const HTTP_LIMITS = Object.freeze({
  /** Elements that an iterator requests and holds at most (its option `demand`). */
  demand: 256,
  /** Bytes of an element. */
  element: 4 * 1024 * 1024,
  /** Characters of the text of an error. */
  text: 4096,
});

/** Milliseconds before each attempt to repeat a request. Below the 60 s after which a server forgets a subscription. */
const PAUSES = Object.freeze([100, 500, 1000, 2000, 4000, 8000]);
/** A proxy, or a server that has no time now: without X-Rsio-Error the request is repeated. */
const RETRIED = new Set([408, 425, 429, 500, 502, 503, 504]);
const MAX_PAUSE = 300_000; // milliseconds; a Retry-After is obeyed up to here
const EMPTY_PAUSE = 500; // milliseconds between two polls of a server that does not hold them
const LENGTH = 4; // bytes before an element
const PREFIXED = "x-rsio-lengthprefixedelements";

const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const DECODERS = Object.freeze({
  bytes: (bytes) => bytes,
  text: (bytes) => STRICT_UTF8.decode(bytes),
  json: (bytes) => JSON.parse(STRICT_UTF8.decode(bytes)),
});
const CLOCK = Object.freeze({
  now: () => performance.now(),
  setTimeout: (callback, delay) => setTimeout(callback, delay),
  clearTimeout: (timer) => clearTimeout(timer),
});
const OPTIONS = new Set([
  ...["type", "demand", "signal", "bearer", "credentials", "delivery", "limits", "traceparent"],
  ...["fetch", "EventSource", "clock", "page", "beacon"],
]);

/** Return the elements of the publisher at `url` as an async iterable, with automatic demand. A `break` cancels. */
export function stream(url, options = {}) {
  return new HttpStream(checkedUrl(url), checkedOptions(options));
}

class HttpStream {
  #url;
  #options;
  #decode;
  #subscription = null;
  #controller = new AbortController();
  #events = null;
  #position = 0; // elements that have arrived
  #taken = 0; // elements that the program has got
  #requested = 0; // the demand that the server was told of, in all
  #values = [];
  #waiter = null;
  #room = null; // wakes the loop that polls
  #broken = 0; // bodies in a row that broke before their first new element
  #isIterated = false;
  #isOver = false;
  #error = null;
  #onAbort = () => this.#stop(this.#options.signal.reason);
  #onPageHide = () => this.#leavePage();

  constructor(url, options) {
    this.#url = url;
    this.#options = options;
    this.#decode = typeof options.type === "function" ? options.type : DECODERS[options.type];
  }

  [Symbol.asyncIterator]() {
    if (this.#isIterated) throw new UsageError("the stream was iterated before: call stream() for another one");
    this.#isIterated = true;
    const { signal, page } = this.#options;
    signal?.addEventListener("abort", this.#onAbort);
    page?.addEventListener("pagehide", this.#onPageHide);
    if (signal?.aborted) this.#stop(signal.reason);
    else this.#run();
    return this;
  }

  next() {
    if (!this.#isIterated) this[Symbol.asyncIterator]();
    if (this.#values.length > 0) return Promise.resolve({ value: this.#take(), done: false });
    if (this.#isOver) return this.#ending();
    if (this.#waiter !== null) return Promise.reject(new UsageError("next() was called again before it had answered: await it first"));
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
    });
  }

  /** Cancel the stream. A `break` calls this. */
  return(value) {
    this.#isIterated = true;
    this.#stop(null);
    this.#values = [];
    return Promise.resolve({ value, done: true });
  }

  // --- the loop

  async #run() {
    let error = null;
    try {
      await this.#subscribe();
      if (this.#options.delivery === "events") await this.#readEvents();
      else while (!this.#isOver && (await this.#poll()));
    } catch (thrown) {
      error = thrown;
    }
    if (this.#isOver) return;
    if (error === null) this.#subscription = null; // the server has ended it
    this.#stop(error);
  }

  async #subscribe() {
    const demand = this.#options.demand;
    const { traceparent } = this.#options;
    const response = await this.#repeat(withArgument(this.#url, demand), {
      "X-Rsio-Requested": String(demand),
      ...(traceparent === undefined ? {} : { traceparent }),
    });
    const location = response.headers.get("Location");
    if (response.status !== 201 || location === null) throw await this.#refusal(response);
    this.#requested = demand;
    this.#subscription = new URL(location, response.url || this.#url);
    await response.body?.cancel();
    // The program may have left while the answer was on its way.
    if (this.#isOver) this.#cancelSubscription();
  }

  /** Send one poll and take its elements. Return false if the stream has completed. */
  async #poll() {
    await this.#waitForRoom();
    if (this.#isOver) return false;
    const inAll = this.#taken + this.#options.demand;
    const began = this.#options.clock.now();
    const response = await this.#repeat(withArgument(this.#subscription, Math.max(0, inAll - this.#requested)), {
      "X-Rsio-Position": String(this.#position),
      "X-Rsio-Requested": String(inAll),
      "X-Rsio-Delivery": "stream",
    });
    this.#requested = Math.max(this.#requested, inAll);
    if (response.status === 200) {
      await this.#readElements(response);
      return true;
    }
    if (response.status === 204) {
      const pause = retryAfter(response) || (this.#options.clock.now() - began < EMPTY_PAUSE ? EMPTY_PAUSE : 0);
      await this.#sleep(pause);
      return true;
    }
    if (response.status === 410 && !isFinal(response)) {
      await response.body?.cancel();
      return false;
    }
    throw await this.#refusal(response);
  }

  /** Wait until a quarter of the window is free: of elements that have not come, or of demand that the server was not told of. */
  #waitForRoom(used = () => this.#position) {
    const hasRoom = () => {
      const room = this.#taken + this.#options.demand - used();
      return this.#isOver || room >= Math.max(1, Math.floor(this.#options.demand / 4));
    };
    if (hasRoom()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#room = () => {
        if (!hasRoom()) return;
        this.#room = null;
        resolve();
      };
    });
  }

  /** Send a request until it is answered; give up after as many attempts as there are `PAUSES`. */
  async #repeat(url, headers) {
    for (let attempt = 0; ; attempt += 1) {
      const pause = PAUSES[attempt];
      let response = null;
      try {
        response = await this.#ask(url, headers);
      } catch (error) {
        if (this.#isOver || pause === undefined) {
          throw new ConnectionLost(`${this.#url.origin} does not answer, or its answer is hidden from this page (http.origins): ${error.message}`, {
            cause: error,
          });
        }
      }
      if (response !== null && (pause === undefined || !RETRIED.has(response.status) || isFinal(response))) return response;
      await response?.body?.cancel();
      await this.#sleep(Math.max(pause, response === null ? 0 : retryAfter(response)));
    }
  }

  #ask(url, headers) {
    const { bearer, credentials, fetch } = this.#options;
    const isOwn = new URL(url).origin === this.#url.origin;
    return fetch(url, {
      method: "PUT",
      headers: bearer !== undefined && isOwn ? { ...headers, Authorization: `Bearer ${bearer}` } : headers,
      cache: "no-store",
      credentials: isOwn ? credentials : "omit",
      signal: this.#controller.signal,
    });
  }

  // --- answers

  async #readElements(response) {
    const coding = (response.headers.get("Content-Encoding") ?? "identity").toLowerCase();
    const told = response.headers.get("X-Rsio-Position");
    const at = told === null ? this.#position : Number(told);
    if (!Number.isSafeInteger(at)) throw new ProtocolError(`the server has sent the position "${told}"`);
    const isBatch = coding === PREFIXED;
    const reader = new BatchReader(this.#options.limits.element, isBatch);
    const held = [];
    const before = this.#position;
    let next = at;
    try {
      for await (const chunk of chunksOf(response)) {
        const elements = reader.feed(chunk);
        if (told === null) held.push(...elements);
        else next = this.#receive(elements, next);
      }
    } catch (error) {
      if (error instanceof LimitExceeded || error instanceof ProtocolError || this.#isOver) throw error;
      return this.#pauseAfterBreak(before); // the next poll says what has come
    }
    const rest = reader.end();
    if (rest === null) return this.#pauseAfterBreak(before);
    this.#receive(told === null ? [...held, ...rest] : rest, next);
    this.#broken = 0;
  }

  /** Wait before the next poll if a body broke before its first new element; give up as `#repeat` does. */
  async #pauseAfterBreak(before) {
    if (this.#position > before) {
      this.#broken = 0;
      return;
    }
    const pause = PAUSES[this.#broken];
    this.#broken += 1;
    if (pause === undefined) throw new ConnectionLost(`the answers of ${this.#url.origin} break before their first element`);
    await this.#sleep(pause);
  }

  /** Take elements of which the first has the position `at`, without those that have come before. Return the next position. */
  #receive(elements, at) {
    if (at > this.#position) throw new ProtocolError(`the server has left out elements: ${at} follows ${this.#position}`);
    for (const element of elements.slice(this.#position - at)) {
      if (this.#isOver) break;
      this.#position += 1;
      this.#deliver(this.#decode(element));
    }
    return at + elements.length;
  }

  #deliver(value) {
    this.#values.push(value);
    if (this.#waiter === null) return;
    const { resolve } = this.#waiter;
    this.#waiter = null;
    resolve({ value: this.#take(), done: false });
  }

  #take() {
    this.#taken += 1;
    const value = this.#values.shift();
    this.#room?.();
    return value;
  }

  async #refusal(response) {
    const text = (await response.text().catch(() => "")).trim().slice(0, this.#options.limits.text);
    const what = `${text || "the server gave no reason"} (HTTP ${response.status})`;
    if (isFinal(response)) this.#subscription = null;
    return response.status === 401 ? new AuthRefused(what) : new PublisherFailed(what, { reason: text });
  }

  // --- EventSource

  async #readEvents() {
    const { EventSource, credentials } = this.#options;
    const { promise, resolve, reject } = withResolvers();
    const url = `${this.#subscription.href}/events`;
    const events = new EventSource(url, { withCredentials: credentials === "include" });
    this.#events = events;
    events.onmessage = (event) => {
      try {
        const at = Number(event.lastEventId);
        if (at === this.#position) this.#receive([bytesOf(event.data)], at);
        else if (at > this.#position) throw new ProtocolError(`the server has left out elements: ${at} follows ${this.#position}`);
      } catch (error) {
        reject(error);
      }
    };
    events.addEventListener("rsio-complete", () => resolve());
    events.addEventListener("rsio-error", (event) => {
      this.#subscription = null;
      reject(new PublisherFailed(event.data, { reason: event.data }));
    });
    // An EventSource that is connecting again tells of an error too. One that is closed has given up.
    events.onerror = () => {
      if (events.readyState === 2) reject(new ConnectionLost(`the events of ${this.#url.origin} have ended, and the browser gave up`));
    };
    this.#renewEvents().catch(reject);
    await promise;
    events.close();
  }

  /** Send more demand as the program takes elements: the events themselves carry none. */
  async #renewEvents() {
    for (;;) {
      await this.#waitForRoom(() => this.#requested);
      if (this.#isOver) return;
      const inAll = this.#taken + this.#options.demand;
      const path = `${this.#subscription.href}/requestMore=${inAll - this.#requested}`;
      const response = await this.#repeat(path, { "X-Rsio-Requested": String(inAll) });
      await response.body?.cancel();
      if (response.status !== 200) return; // the stream has ended; its events say how
      this.#requested = inAll;
    }
  }

  // --- the end

  /** End the stream from this side: null without an error. */
  #stop(error) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    // An aborted program wants no more elements; after another end those that have arrived are still delivered.
    if (this.#options.signal?.aborted) this.#values = [];
    this.#release();
    this.#cancelSubscription();
    this.#room?.();
    if (this.#waiter !== null && this.#values.length === 0) {
      const { resolve } = this.#waiter;
      this.#waiter = null;
      resolve(this.#ending());
    }
  }

  #release() {
    this.#events?.close();
    this.#controller.abort();
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    this.#options.page?.removeEventListener("pagehide", this.#onPageHide);
  }

  #cancelSubscription() {
    const subscription = this.#subscription;
    this.#subscription = null;
    if (subscription === null) return;
    // Not the controller of the other requests, which was aborted. `keepalive` lets it outlive the page.
    this.#controller = new AbortController();
    const { fetch, credentials } = this.#options;
    const isOwn = subscription.origin === this.#url.origin;
    fetch(`${subscription.href}/cancel`, { method: "POST", keepalive: true, credentials: isOwn ? credentials : "omit" }).catch(() => {});
  }

  #leavePage() {
    const subscription = this.#subscription;
    this.#subscription = null;
    if (subscription !== null) this.#options.beacon(`${subscription.href}/cancel`);
    this.#stop(new ConnectionClosed("the page was left, so the stream was cancelled"));
  }

  /** Report the error once, and then the end, as iterators do. */
  #ending() {
    const error = this.#error;
    this.#error = null;
    return error === null ? Promise.resolve({ value: undefined, done: true }) : Promise.reject(error);
  }

  #sleep(milliseconds) {
    const { clock } = this.#options;
    const { signal } = this.#controller;
    if (milliseconds <= 0 || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clock.clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = clock.setTimeout(done, milliseconds);
      signal.addEventListener("abort", done);
    });
  }
}

/** Cuts the body of an answer into elements: of a batch, or the whole body as one. */
class BatchReader {
  #most;
  #isBatch;
  #held = new Uint8Array(0); // bounded: one element, and one chunk

  constructor(most, isBatch) {
    this.#most = most;
    this.#isBatch = isBatch;
  }

  /** Return the elements that are complete. */
  feed(chunk) {
    const data = this.#held.length === 0 ? chunk : joined(this.#held, chunk);
    if (!this.#isBatch) {
      this.#check(data.length);
      this.#held = data;
      return [];
    }
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const elements = [];
    let at = 0;
    while (data.length - at >= LENGTH) {
      const size = view.getUint32(at);
      this.#check(size);
      if (data.length - at - LENGTH < size) break;
      elements.push(data.slice(at + LENGTH, at + LENGTH + size));
      at += LENGTH + size;
    }
    this.#held = data.slice(at);
    return elements;
  }

  /** Return the elements that the end of the body completes; null if it was cut inside one. */
  end() {
    if (!this.#isBatch) return [this.#held];
    return this.#held.length === 0 ? [] : null;
  }

  #check(size) {
    if (size > this.#most) throw new LimitExceeded(`an element has ${size} bytes; ${this.#most} are allowed (limits.element)`);
  }
}

async function* chunksOf(response) {
  if (response.body === null) return;
  const reader = response.body.getReader();
  let isRead = false;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      yield value;
    }
    isRead = true;
  } finally {
    if (!isRead) reader.cancel().catch(() => {});
  }
}

function joined(one, other) {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

/** Promise.withResolvers, which Node.js 20 does not have. */
function withResolvers() {
  let resolve;
  let reject;
  const promise = new Promise((resolveIt, rejectIt) => {
    resolve = resolveIt;
    reject = rejectIt;
  });
  return { promise, resolve, reject };
}

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

function isFinal(response) {
  return (response.headers.get("X-Rsio-Error") ?? "").toLowerCase() === "true";
}

/** Return a Retry-After in milliseconds; 0 for a date, or for none. */
function retryAfter(response) {
  const seconds = Number(response.headers.get("Retry-After") ?? 0);
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(MAX_PAUSE, seconds * 1000) : 0;
}

function withArgument(url, demand) {
  const made = new URL(url);
  made.search += `${made.search === "" ? "?" : "&"}request=${demand}`;
  return made.href;
}

function checkedUrl(url) {
  let parsed;
  try {
    parsed = new URL(url, globalThis.location?.href);
  } catch {
    throw new UsageError(`"${url}" is no URL; write that of a publisher, for example http://127.0.0.1:7002/p/ticks/EURUSD`);
  }
  if (!["http:", "https:"].includes(parsed.protocol) || parsed.pathname === "/") {
    throw new UsageError(`"${url}" names no publisher over HTTP; write for example http://127.0.0.1:7002/p/ticks/EURUSD`);
  }
  if (parsed.searchParams.has("request")) throw new UsageError(`"${url}" has the argument "request", which is the demand: leave it out`);
  return parsed;
}

function checkedOptions(options) {
  for (const name of Object.keys(options)) {
    if (!OPTIONS.has(name)) throw new UsageError(`stream() has no option "${name}"; it has ${[...OPTIONS].join(", ")}`);
  }
  const limits = { ...HTTP_LIMITS, ...options.limits };
  const type = options.type ?? "bytes";
  if (typeof type !== "function" && !Object.hasOwn(DECODERS, type)) {
    throw new UsageError(`type is "${type}"; give "bytes", "text", "json" or a function of bytes`);
  }
  const demand = options.demand ?? limits.demand;
  if (!Number.isSafeInteger(demand) || demand < 1) throw new UsageError(`demand is ${demand}; give a whole number from 1 on`);
  const delivery = options.delivery ?? "stream";
  if (delivery !== "stream" && delivery !== "events") throw new UsageError(`delivery is "${delivery}"; give "stream" or "events"`);
  const { traceparent } = options;
  if (traceparent !== undefined && !/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(traceparent)) {
    throw new UsageError(`traceparent is "${traceparent}"; give one of W3C Trace Context: 00-, 32 hex digits, -, 16 of them, -01`);
  }
  const EventSource = options.EventSource ?? globalThis.EventSource;
  if (delivery === "events" && EventSource === undefined) throw new UsageError("there is no EventSource here; pass one, or read with fetch");
  return {
    fetch: (url, request) => globalThis.fetch(url, request),
    clock: CLOCK,
    page: typeof globalThis.window === "undefined" ? null : globalThis.window,
    beacon: (url) => globalThis.navigator.sendBeacon(url),
    credentials: "same-origin",
    ...options,
    ...{ limits, type, demand, delivery, EventSource },
  };
}
