/**
 * A client of Penstock for pages, workers and Node: RS.io version 0 over WebSocket, with demand all the way. No dependencies.
 *
 * The parts of this module, from the bottom up: errors, limits, encoding, the decoder, one stream, one WebSocket (`Link`, with `Receiver`
 * for what comes from the server), the connection that outlives its WebSockets (`Connection`), and the async iterator (`Stream`).
 *
 * It is one file, so that a page can use it as it is, without a build step.
 *
 * Rules of this module:
 *
 * - A length is checked when it is announced, before the bytes behind it are kept.
 * - Every table and every buffer has a bound in `LIMITS`.
 * - Bytes of a server end at most the connection to that server. A fault of the program ends at most one stream.
 * - The times come from `clock` and the random numbers from `random`, so tests need no real time.
 */

// ------------------------------------------------------------------------------------------------------------- errors

/** The parent of all errors of this module. `who` names the side that must act: "you", "the server" or "the network". */
export class PenstockError extends Error {
  constructor(message, { who = "you", reason = "", cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.who = who;
    this.reason = reason;
  }
}

/** You must act: a call was wrong. */
export class UsageError extends PenstockError {}

/** You must act: a bound of this side was reached. The message names it. */
export class LimitExceeded extends PenstockError {}

/** You must act: the server accepts no such credentials, or takes none. */
export class AuthRefused extends PenstockError {}

/** The author of the server must act: the server broke the protocol. */
export class ProtocolError extends PenstockError {
  constructor(message, options = {}) {
    super(message, { who: "the server", ...options });
  }
}

/** The server ended the stream, or refused it. `reason` is the text of the server. */
export class PublisherFailed extends PenstockError {
  constructor(message, options = {}) {
    super(message, { who: "the server", ...options });
  }
}

/** The connection ended without a goodbye: the network, the browser or a proxy cut it, or nothing listens there. */
export class ConnectionLost extends PenstockError {
  constructor(message, options = {}) {
    super(message, { who: "the network", ...options });
  }
}

/** One side said goodbye. `reason` is the reason of the server, empty if it had none. */
export class ConnectionClosed extends PenstockError {
  constructor(message, options = {}) {
    super(message, { who: "the server", ...options });
  }
}

// ------------------------------------------------------------------------------------------------------------- limits

/** Every bound of a connection, with its default. `connect(url, { limits: { element: 65536 } })` changes one. */
export const LIMITS = Object.freeze({
  /** Bytes of one WebSocket message. The browser has received it before this module sees it; npm's `ws` refuses it earlier. */
  message: 16 * 1024 * 1024,
  /** Bytes of an element in one message of RS.io, of a part, of packed elements together, of an extension's message. */
  frame: 1024 * 1024,
  /** Bytes of an element that is joined from parts. */
  element: 4 * 1024 * 1024,
  /** Parts of one element. */
  parts: 8192,
  /** Unfinished elements of one stream. */
  partials: 4,
  /** Unfinished elements of the connection. */
  partialsInAll: 64,
  /** Bytes of all unfinished elements of the connection. */
  partialBytes: 8 * 1024 * 1024,
  /** Milliseconds for which an element may stay unfinished. */
  partialAge: 30_000,
  /** Elements that an iterator requests and holds at most (its option `demand`). */
  demand: 256,
  /** Bytes of elements that one iterator holds at most. */
  buffer: 16 * 1024 * 1024,
  /** Bytes that wait for the network at most. */
  outgoing: 8 * 1024 * 1024,
  /** Bytes of a publisher's name, of the text of an error, of the reason of a goodbye; ids of extensions in a hello. */
  name: 1024,
  text: 4096,
  reason: 1024,
  extensions: 64,
  /** Cancelled streams whose end has not arrived. Above half of it, those older than a minute are forgotten. */
  retired: 65_536,
  /** Bytes of late elements of one cancelled stream. */
  late: 32 * 1024 * 1024,
  /** Odd messages of the server: a burst, refilled at 33 a second. */
  oddities: 1000,
  /** Milliseconds from the start of an attempt to the end of the handshake, credentials included. */
  handshake: 10_000,
  /** Milliseconds to wait for the server's goodbye. */
  goodbye: 2000,
});

const ODDITIES_PER_SECOND = 33;
const PLACES_BYTES = 64; // of a body of the extension position
const TINY_PART = 64; // bytes; a smaller part that is not the last one is odd
const RETIRED_AGE = 60_000; // milliseconds
const PING_BYTES = 125;
const PING_TOO_SOON = 4250; // milliseconds; 5 s less 15 %
const PING_STRIKES = 3;
const LATE_TIMER = 5000; // milliseconds; a timer that fires later than this shows that the page was frozen
const CLOSE_AFTER_ERROR = 100; // milliseconds
const REQUEST_PART = 16 * 1024; // bytes of data in one message of a request, so that a large one delays no other stream

/** Demand without bound, 2^63-1, as `request(Infinity)`. */
export const UNBOUNDED = 2n ** 63n - 1n;

/** The remainders of CRC-32, of each byte. */
const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit += 1) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1;
  return rest;
});

/**
 * The one of `partitions` that has the elements with this key: its index is the CRC-32 of the key, modulo their number.
 * The key is a text, or bytes.
 */
export function partitionOf(key, partitions) {
  const bytes = typeof key === "string" ? new TextEncoder().encode(key) : key;
  if (!(bytes instanceof Uint8Array) || !partitions?.length) {
    throw new UsageError("give partitionOf() a key, a text or a Uint8Array, and the names of the partitions");
  }
  let rest = 0xffffffff;
  for (const byte of bytes) rest = (rest >>> 8) ^ CRC[(rest ^ byte) & 0xff];
  return partitions[((rest ^ 0xffffffff) >>> 0) % partitions.length];
}

/** The default clock. Tests pass another one. */
const CLOCK = Object.freeze({
  now: () => performance.now(),
  setTimeout: (callback, delay) => setTimeout(callback, delay),
  clearTimeout: (timer) => clearTimeout(timer),
});

// ------------------------------------------------------------------------------------------------------------- the bytes

const CLIENT_HELLO = 0x01;
const SERVER_HELLO = 0x02;
const GOODBYE = 0x03;
const SUBSCRIBE = 0x10;
const REQUEST = 0x11;
const CANCEL = 0x12;
const ON_SUBSCRIBE = 0x20;
const ON_NEXT = 0x21;
const ON_NEXT_PACKED = 0x22;
const ON_NEXT_PART = 0x23;
const ON_NEXT_LAST_PART = 0x24;
const ON_COMPLETE = 0x25;
const ON_ERROR = 0x26;
const PING = 0x40;
const PONG = 0x41;
const CREDENTIALS = 0x42;
const VERDICT = 0x43;
const CONTENT = 0x44;
const PLACES = 0x46;
const POSITIONS = 0x47;
const REQUEST_WITH_DATA = 0x4c;
const MORE_DATA = 0x4d;

const KEEPALIVE_ID = 1;
const AUTH_ID = 2;
const CONTENT_ID = 3;
const POSITION_ID = 4;
const REQUESTS_ID = 7;

const UTF8 = new TextEncoder();
// Without ignoreBOM a decoder would drop the first character of a text that begins with U+FEFF.
const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const LENIENT_UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** A fault in received bytes. It ends the connection with a goodbye that gives `reason`. */
class Refusal extends Error {
  constructor(reason, message) {
    super(message);
    this.reason = reason;
  }
}

/** Bytes that grow: the messages that wait for the next send. */
class Writer {
  #bytes = new Uint8Array(256);
  length = 0;

  #reserve(count) {
    if (this.length + count > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(this.length + count, this.#bytes.length * 2));
      larger.set(this.#bytes.subarray(0, this.length));
      this.#bytes = larger;
    }
  }

  byte(value) {
    this.#reserve(1);
    this.#bytes[this.length++] = value;
    return this;
  }

  raw(bytes) {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.length);
    this.length += bytes.length;
    return this;
  }

  /** Write an integer from 0 to 2^63-1: a number, or a bigint above 2^53-1. */
  varint(value) {
    if (typeof value === "bigint") {
      let rest = value;
      for (; rest > 0x7fn; rest >>= 7n) this.byte(Number(rest & 0x7fn) | 0x80);
      return this.byte(Number(rest));
    }
    let rest = value;
    // Not `>>`: it would cut the number to 32 bits.
    for (; rest > 0x7f; rest = Math.floor(rest / 128)) this.byte((rest % 128) | 0x80);
    return this.byte(rest);
  }

  bytes(value) {
    return this.varint(value.length).raw(value);
  }

  str(text) {
    return this.bytes(UTF8.encode(text));
  }

  /** Return a copy of all bytes and start again. A copy, because npm's `ws` keeps the array that it is given. */
  take() {
    const taken = this.#bytes.slice(0, this.length);
    this.length = 0;
    if (this.#bytes.length > 65_536) this.#bytes = new Uint8Array(256);
    return taken;
  }
}

/** Write the fields of each message. The names are those of the reference page of RS.io. */
const write = {
  clientHello(out, { extensions = [] }) {
    out.byte(CLIENT_HELLO).byte(0).varint(extensions.length);
    for (const id of extensions) out.varint(id);
  },
  goodbye: (out, { reason = "" }) => out.byte(GOODBYE).str(reason),
  subscribe: (out, { publisher, subscriber, demand }) => out.byte(SUBSCRIBE).str(publisher).varint(subscriber).varint(demand),
  request: (out, { subscriber, demand }) => out.byte(REQUEST).varint(subscriber).varint(demand),
  cancel: (out, { subscriber }) => out.byte(CANCEL).varint(subscriber),
  onError: (out, { subscriber, error }) => out.byte(ON_ERROR).varint(subscriber).str(error),
  extension: (out, { type, body }) => out.byte(type).bytes(body),
};

/** Return the bytes of a message that a client sends, such as `encode("request", { subscriber: 0, demand: 128 })`. */
export function encode(name, fields) {
  const out = new Writer();
  write[name](out, fields);
  return out.take();
}

const MORE = -1; // the message is incomplete

/**
 * Cuts received bytes into messages and calls the sink for each. The bytes may be cut anywhere.
 *
 * The sink has `streams`, a map from ids to objects with `elementSize` (negative before onSubscribe), `receiveElement(data, from, to)` and
 * `receivePart(number, part, isLast)`; and a method for each other message. `feed` stops when `sink.isClosing` is true.
 */
export class Decoder {
  #sink;
  #limits;
  #held = []; // chunks of an incomplete message
  #heldBytes = 0;
  #need = 1; // bytes of the incomplete message; fewer are only kept
  #after = { next: 0 }; // the position behind the varint or the bytes that were read last
  #isFirst = true;
  #hasHello = false;

  constructor(sink, limits = LIMITS) {
    this.#sink = sink;
    this.#limits = limits;
  }

  /** Bytes of the incomplete message. */
  get held() {
    return this.#heldBytes;
  }

  /** Decode a chunk. Throws an error with `reason` at the first byte that is not allowed. */
  feed(chunk) {
    if (chunk.length === 0) return;
    if (this.#isFirst) {
      if (chunk[0] !== SERVER_HELLO && chunk[0] !== GOODBYE) throw new Refusal("protocol:hello", "it begins with no hello of RS.io");
      this.#isFirst = false;
    }
    let data = chunk;
    if (this.#heldBytes > 0) {
      this.#held.push(chunk);
      this.#heldBytes += chunk.length;
      if (this.#heldBytes < this.#need) return; // joined once and not with each chunk, so the work is linear
      data = join(this.#held, this.#heldBytes);
      this.#held = [];
      this.#heldBytes = 0;
    }
    let position = 0;
    while (position < data.length && !this.#sink.isClosing) {
      const after = this.#message(data, position);
      if (after < 0) break;
      position = after;
      this.#need = 1;
    }
    if (position < data.length && !this.#sink.isClosing) {
      // A copy: a few bytes must not keep a chunk of 256 KiB.
      this.#held = [data.slice(position)];
      this.#heldBytes = data.length - position;
      if (this.#need <= this.#heldBytes) this.#need = this.#heldBytes + 1;
    }
  }

  #message(data, start) {
    const type = data[start];
    switch (type) {
      case ON_NEXT:
        return this.#onNext(data, start);
      case ON_NEXT_PACKED:
        return this.#onNextPacked(data, start);
      case ON_NEXT_PART:
      case ON_NEXT_LAST_PART:
        return this.#onNextPart(data, start);
      case ON_COMPLETE:
      case CANCEL:
        return this.#idOnly(data, start);
      case ON_SUBSCRIBE:
      case REQUEST:
        return this.#twoNumbers(data, start);
      case ON_ERROR:
        return this.#onError(data, start);
      case SUBSCRIBE:
        return this.#subscribe(data, start);
      case CLIENT_HELLO:
      case SERVER_HELLO:
        return this.#hello(data, start);
      case GOODBYE:
        return this.#goodbye(data, start);
      default:
        return this.#extension(data, start);
    }
  }

  #onNext(data, start) {
    let subscriber = data[start + 1];
    let from = start + 2;
    if (subscriber === undefined) return MORE;
    if (subscriber > 0x7f) {
      subscriber = this.#varint(data, start + 1);
      if (subscriber < 0) return MORE;
      from = this.#after.next;
    }
    const stream = this.#stream(subscriber);
    let size = stream.elementSize;
    if (size === 0) {
      size = this.#varint(data, from);
      if (size < 0) return MORE;
      from = this.#after.next;
      if (size > this.#limits.frame) throw tooLong("limit:frame", size, this.#limits.frame);
    }
    const to = from + size;
    if (to > data.length) return this.#wait(to - start);
    stream.receiveElement(data, from, to);
    return to;
  }

  #onNextPacked(data, start) {
    const subscriber = this.#varint(data, start + 1);
    if (subscriber < 0) return MORE;
    const stream = this.#stream(subscriber);
    const size = stream.elementSize;
    if (size === 0) throw new Refusal("protocol:packed", `packed elements on stream ${subscriber}, whose elements have no fixed size`);
    const count = this.#varint(data, this.#after.next);
    if (count < 0) return MORE;
    if (count === 0) throw new Refusal("protocol:packed", `a packed message without elements on stream ${subscriber}`);
    // Number(): a count above 2^53 is a bigint, and its product is above the limit in any case.
    if (Number(count) * size > this.#limits.frame) throw tooLong("limit:frame", BigInt(count) * BigInt(size), this.#limits.frame);
    const from = this.#after.next;
    const to = from + count * size;
    if (to > data.length) return this.#wait(to - start);
    stream.receivePacked(count, data, from);
    return to;
  }

  #onNextPart(data, start) {
    const subscriber = this.#varint(data, start + 1);
    if (subscriber < 0) return MORE;
    const stream = this.#stream(subscriber);
    const number = this.#varint(data, this.#after.next);
    if (number < 0) return MORE;
    const part = this.#bytes(data, start, this.#after.next, "limit:frame", this.#limits.frame);
    if (part === null) return MORE;
    const after = this.#after.next;
    stream.receivePart(number, part, data[start] === ON_NEXT_LAST_PART);
    return after;
  }

  #idOnly(data, start) {
    const subscriber = this.#varint(data, start + 1);
    if (subscriber < 0) return MORE;
    const after = this.#after.next;
    if (data[start] === ON_COMPLETE) this.#sink.receiveComplete(subscriber);
    else this.#sink.receiveCancel(subscriber);
    return after;
  }

  #twoNumbers(data, start) {
    const subscriber = this.#varint(data, start + 1);
    if (subscriber < 0) return MORE;
    const number = this.#varint(data, this.#after.next);
    if (number < 0) return MORE;
    const after = this.#after.next;
    if (data[start] === REQUEST) {
      this.#sink.receiveRequest(subscriber, number);
    } else {
      if (number > this.#limits.frame) throw tooLong("limit:frame", number, this.#limits.frame);
      this.#sink.receiveOnSubscribe(subscriber, number);
    }
    return after;
  }

  #onError(data, start) {
    const subscriber = this.#varint(data, start + 1);
    if (subscriber < 0) return MORE;
    const text = this.#bytes(data, start, this.#after.next, "limit:text", this.#limits.text);
    if (text === null) return MORE;
    const after = this.#after.next;
    this.#sink.receiveError(subscriber, LENIENT_UTF8.decode(text));
    return after;
  }

  #subscribe(data, start) {
    const name = this.#bytes(data, start, start + 1, "limit:name", this.#limits.name);
    if (name === null) return MORE;
    const subscriber = this.#varint(data, this.#after.next);
    if (subscriber < 0) return MORE;
    const demand = this.#varint(data, this.#after.next);
    if (demand < 0) return MORE;
    const after = this.#after.next;
    this.#sink.receiveSubscribe(LENIENT_UTF8.decode(name), subscriber, demand);
    return after;
  }

  #hello(data, start) {
    // A clientHello is refused, too: this side is the client.
    if (this.#hasHello || data[start] === CLIENT_HELLO) throw new Refusal("protocol:hello", "a second hello, or that of a client");
    if (start + 1 >= data.length) return MORE;
    const version = data[start + 1];
    if (version !== 0) throw new Refusal("version 0", `the server speaks version ${version} of RS.io, this module version 0`);
    const count = this.#varint(data, start + 2);
    if (count < 0) return MORE;
    if (count > this.#limits.extensions) throw tooLong("limit:extensions", count, this.#limits.extensions);
    const extensions = [];
    while (extensions.length < count) {
      const id = this.#varint(data, this.#after.next);
      if (id < 0) return MORE;
      extensions.push(id);
    }
    const after = this.#after.next;
    this.#hasHello = true;
    this.#sink.receiveHello(extensions);
    return after;
  }

  #goodbye(data, start) {
    const text = this.#bytes(data, start, start + 1, "limit:reason", this.#limits.reason);
    if (text === null) return MORE;
    const after = this.#after.next;
    this.#sink.receiveGoodbye(LENIENT_UTF8.decode(text));
    return after;
  }

  #extension(data, start) {
    const type = data[start];
    const hex = `0x${type.toString(16).padStart(2, "0")}`;
    if (type < 0x40 || type > 0x7e) throw new Refusal(`protocol:type ${hex}`, `${hex} is no message type of RS.io`);
    const length = this.#varint(data, start + 1);
    if (length < 0) return MORE;
    if (length > this.#limits.frame) throw tooLong("limit:frame", length, this.#limits.frame);
    // The length alone may be a fault, and bytes that would be refused are not waited for.
    this.#sink.checkExtension(type, length, hex);
    const from = this.#after.next;
    const to = from + length;
    if (to > data.length) return this.#wait(to - start);
    this.#sink.receiveExtension(type, data.slice(from, to));
    return to;
  }

  #stream(subscriber) {
    const stream = this.#sink.streams.get(subscriber);
    // Without the element size from onSubscribe the end of the message is not known, so this ends the connection and not the stream.
    if (stream === undefined || stream.elementSize < 0) throw notBegun(subscriber);
    return stream;
  }

  #bytes(data, start, at, reason, limit) {
    const length = this.#varint(data, at);
    if (length < 0) return null;
    if (length > limit) throw tooLong(reason, length, limit);
    const from = this.#after.next;
    const to = from + length;
    if (to > data.length) {
      this.#wait(to - start);
      return null;
    }
    this.#after.next = to;
    return data.slice(from, to);
  }

  #varint(data, at) {
    return readVarint(data, at, this.#after);
  }

  #wait(size) {
    this.#need = size;
    return MORE;
  }
}

/** Return the integer at `at`, a bigint above 2^53-1, or MORE. `after.next` is set to the position behind it. */
function readVarint(data, at, after) {
  let value = 0;
  for (let index = 0; index < 9; index += 1) {
    const byte = data[at + index];
    if (byte === undefined) return MORE;
    if (byte < 0x80) {
      if (byte === 0 && index > 0) break;
      after.next = at + index + 1;
      // Seven bytes hold 49 bits, which a number holds exactly.
      return index < 7 ? value + byte * 2 ** (7 * index) : longVarint(data, at, index);
    }
    value += (byte & 0x7f) * 2 ** (7 * index);
  }
  throw new Refusal("protocol:varint", "a varint of more than 9 bytes, or not in its shortest form");
}

function longVarint(data, at, last) {
  let value = 0n;
  for (let index = last; index >= 0; index -= 1) value = (value << 7n) | BigInt(data[at + index] & 0x7f);
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

function join(chunks, length) {
  const joined = new Uint8Array(length);
  let position = 0;
  for (const chunk of chunks) {
    joined.set(chunk, position);
    position += chunk.length;
  }
  return joined;
}

function tooLong(reason, size, limit) {
  return new Refusal(`${reason} ${size} > ${limit}`, `the server announced ${size}; this side takes ${limit}`);
}

function notBegun(subscriber) {
  return new Refusal(`protocol:stream ${subscriber}`, `a message for stream ${subscriber}, which is not open or has not begun`);
}

// ------------------------------------------------------------------------------------------------------------- elements

const ELEMENT_DECODERS = Object.freeze({
  // A copy: one element of 64 bytes must not keep a message of 256 KiB.
  bytes: (data, from, to) => data.slice(from, to),
  text: (data, from, to) => STRICT_UTF8.decode(data.subarray(from, to)),
  json: (data, from, to) => JSON.parse(STRICT_UTF8.decode(data.subarray(from, to))),
});

/** Return the function that decodes elements: that of the program, else as announced, else bytes. */
function elementDecoder(type, announced, decoders) {
  if (typeof type === "function") return (data, from, to) => type(data.slice(from, to));
  const wanted = type ?? announced ?? "bytes";
  // Raw bytes fit every serializer.
  if (announced !== null && wanted !== announced && wanted !== "bytes") {
    throw new UsageError(
      `the server sends elements as "${announced}", and this program asked for "${wanted}". Leave out the option type, or pass "bytes"`,
    );
  }
  const own = Object.hasOwn(decoders, wanted) ? decoders[wanted] : undefined;
  if (own !== undefined) return (data, from, to) => own(data.slice(from, to));
  if (Object.hasOwn(ELEMENT_DECODERS, wanted)) return ELEMENT_DECODERS[wanted];
  const known = [...Object.keys(ELEMENT_DECODERS), ...Object.keys(decoders)].join(", ");
  const what = `elements come as "${wanted}", and this program has decoders for ${known}`;
  throw new UsageError(`${what}. Pass decoders: { "${wanted}": (bytes) => … }, or type: "bytes"`);
}

function encodePayload(payload) {
  if (payload instanceof Uint8Array) return payload;
  if (payload instanceof ArrayBuffer) return new Uint8Array(payload);
  if (typeof payload === "string") return UTF8.encode(payload);
  const text = JSON.stringify(payload);
  if (text === undefined) throw new UsageError("the payload of a request is bytes, a string, or a value that JSON can hold");
  return UTF8.encode(text);
}

/** Return the data of a request by name with a payload: a mark, the length of the name, the name, the payload. */
function requestData(name, payload) {
  const named = UTF8.encode(name);
  const out = new Writer();
  out.raw([0xff, 0x72, 0x71, 0x00, named.length >> 8, named.length & 0xff]).raw(named).raw(payload);
  return out.take();
}

function checkedName(name, limits) {
  if (typeof name !== "string") throw new UsageError(`a publisher has a name, a string; this is ${typeof name}`);
  const length = UTF8.encode(name).length;
  if (length > limits.name) throw new UsageError(`the name has ${length} bytes; ${limits.name} are allowed (limits.name)`);
  return name;
}

// ------------------------------------------------------------------------------------------------------------- one stream

const PLACE_WORDS = new Set(["earliest", "latest"]);

/** Return an option that is a place in a stream with positions, as text; null if it was not given. */
function checkedPlace(word, place) {
  if (place === undefined || place === null) return null;
  const isPosition = typeof place === "bigint" ? place >= 0n && place < UNBOUNDED : Number.isSafeInteger(place) && place >= 0;
  if (isPosition || PLACE_WORDS.has(place)) return String(place);
  throw new UsageError(`${word} is ${quoted(String(place))}; pass a position, which is a whole number from 0 on, or "earliest" or "latest"`);
}

/** Return `count` after a position: a number, and a bigint above 2^53. */
function positionAfter(position, count) {
  if (typeof position === "number" && Number.isSafeInteger(position + count)) return position + count;
  const sum = BigInt(position) + BigInt(count);
  return sum <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(sum) : sum;
}

/**
 * Where a stream begins over each of its connections, and where it stops. The server tells the position of the first element, and this side
 * counts. The name that the program has typed is sent unchanged first: its words may be those of a function, and not those of a log.
 */
class StreamPlace {
  #typed;
  #bare;
  #start; // the option, if it is a position
  #stop = null;
  #first = null; // the position of the first element of this connection
  #count = 0; // elements since then

  constructor(name, { start, stop }) {
    const given = { start: checkedPlace("start", start), stop: checkedPlace("stop", stop) };
    const [path, ...query] = name.split("?");
    const pieces = query.length > 0 ? query.join("?").split("&") : [];
    const keys = pieces.map((piece) => piece.split("=")[0]);
    const both = Object.keys(given).find((word) => given[word] !== null && keys.includes(word));
    if (both !== undefined) throw new UsageError(`${both} is an option, and the name ${quoted(name)} has ${both} behind its "?" as well; give it once`);
    const isPlace = (piece) => {
      const [word, place = ""] = piece.split("=");
      return /^(start|stop)$/.test(word) && keys.filter((key) => key === word).length === 1 && /^(\d{1,19}|earliest|latest)$/.test(place);
    };
    const words = new Map(pieces.filter(isPlace).map((piece) => piece.split("=")));
    const rest = pieces.filter((piece) => !isPlace(piece));
    this.#start = given.start !== null && !PLACE_WORDS.has(given.start) ? start : null;
    this.#stop = given.stop ?? words.get("stop") ?? null;
    this.#bare = path + (rest.length > 0 ? `?${rest.join("&")}` : "");
    this.#typed = withPlaces(name, given.start, given.stop);
  }

  /** The position of the next element; null if the publisher has none, or it is not known yet. */
  get next() {
    return this.#first === null ? null : positionAfter(this.#first, this.#count);
  }

  /** The name to subscribe to now. */
  get name() {
    return this.#first === null ? this.#typed : withPlaces(this.#bare, this.next, this.#stop);
  }

  /** Begin on a server that tells no positions: the place that the program has given counts. */
  beginUntold() {
    if (this.#first === null) this.#first = this.#start;
  }

  /** Learn where the publisher begins. Return what is wrong with it, or null: elements would be missing, or come twice. */
  learn(first, latest) {
    const asked = this.next;
    if (asked !== null && BigInt(asked) !== BigInt(first)) return `it begins at position ${first}, and ${asked} was asked for`;
    if (this.#stop === "latest") this.#stop = latest; // on a later connection the word would mean a later position
    this.#first = first;
    this.#count = 0;
    return null;
  }

  count() {
    this.#count += 1;
  }
}

/** Throw for wrong options where they were given, and not when the stream begins. */
function checkPlaces(name, options, limits) {
  checkedName(new StreamPlace(name, options).name, limits);
}

function withPlaces(name, start, stop) {
  const words = [];
  if (start !== null) words.push(`start=${start}`);
  if (stop !== null) words.push(`stop=${stop}`);
  return words.length === 0 ? name : withWords(name, words.join("&"));
}

function withWords(name, words) {
  return `${name}${name.includes("?") ? "&" : "?"}${words}`;
}

/** One subscription: its demand, unfinished elements, subscriber. It moves to the next WebSocket when a connection is made again. */
class ReceivingStream {
  id = -1;
  elementSize = -1; // negative before onSubscribe
  isOver = false;
  unfinished = 0; // elements that were unfinished when the stream ended
  outstanding = 0; // Infinity is demand without bound
  unsent = 0; // requested since the last flush
  link = null;
  announced = null; // the serializer that the server has announced
  restarts = 0; // how often the publisher began anew after a lost connection
  #hasBegun = false; // on any connection
  #connection;
  #subscriber;
  #options;
  #decode = null;
  #parts = new Map(); // number -> { chunks, bytes, since }

  constructor(connection, name, subscriber, options) {
    this.#connection = connection;
    this.#subscriber = subscriber;
    this.#options = options;
    this.name = name;
    this.data = options.data ?? null; // the data of a request
    this.place = new StreamPlace(name, options);
  }

  // --- for the subscriber

  request(n) {
    if (this.isOver) return; // rule 3.6
    if (typeof n !== "number" || !(n >= 1) || (n !== Infinity && !Number.isInteger(n))) {
      this.fail(new UsageError(`request(${String(n)}): request a whole number of elements from 1 on, or Infinity (rule 3.9)`));
      return;
    }
    if (this.outstanding === Infinity) return; // rule 3.17
    const sum = this.outstanding + n;
    this.outstanding = sum > Number.MAX_SAFE_INTEGER ? Infinity : sum;
    if (this.link === null) return; // the subscribe message carries the demand
    this.unsent = this.outstanding === Infinity ? Infinity : this.unsent + n;
    this.link.flushLater(this);
  }

  cancel() {
    if (this.isOver) return; // rule 3.7
    const link = this.link;
    this.#end();
    link?.cancel(this);
  }

  // --- for the connection and the link

  onEnd = () => {};

  begun(subscription) {
    this.#call("onSubscribe", subscription);
  }

  /** Take a place on a new link. The demand that was not used up is sent with the subscribe. */
  attach(link, id) {
    // Nothing says where the elements before have ended.
    if (this.#hasBegun && this.place.next === null) this.#restart();
    this.link = link;
    this.id = id;
    this.elementSize = -1;
    this.unsent = 0;
    this.announced = null;
  }

  /** Forget a lost link: elements that were unfinished come again, so their demand is given back. */
  detach() {
    this.link = null;
    if (this.outstanding !== Infinity) this.outstanding += this.#parts.size;
    this.#parts.clear();
  }

  begin(elementSize) {
    this.elementSize = elementSize;
    this.#hasBegun = true;
    if (!this.link.extensions.has(POSITION_ID)) this.place.beginUntold();
    try {
      this.#decode = elementDecoder(this.#options.type, this.announced, this.#options.decoders ?? {});
    } catch (error) {
      this.fail(error);
    }
  }

  /** Learn the position of the first element, right before the stream begins. */
  learn(first, latest) {
    const wrong = this.place.learn(first, latest);
    if (wrong !== null) {
      this.fail(new ProtocolError(`stream "${this.name}": ${wrong}. The author of the server must act`, { reason: "protocol:position" }));
    }
  }

  receiveElement(data, from, to) {
    if (this.isOver) return;
    // rule 1.1
    if (this.outstanding <= 0) {
      this.#failContract("an element came that was not asked for");
      return;
    }
    this.outstanding -= 1;
    this.#deliver(data, from, to);
  }

  receivePacked(count, data, from) {
    // A packed message is judged as a whole: none of its elements is delivered if one of them was not asked for.
    if (count > this.outstanding && !this.isOver) {
      this.#failContract("an element came that was not asked for");
      return;
    }
    const size = this.elementSize;
    const to = from + count * size;
    for (let at = from; at < to && !this.isOver; at += size) this.receiveElement(data, at, at + size);
  }

  receivePart(number, part, isLast) {
    if (this.isOver) return;
    const limits = this.#connection.limits;
    let parts = this.#parts.get(number);
    if (parts === undefined) {
      if (this.outstanding <= 0) {
        this.#failContract("an element came that was not asked for");
        return;
      }
      // The first part takes the demand of its element.
      this.outstanding -= 1;
      // An element in one part is never unfinished, so it needs no place.
      if (!isLast && (this.#parts.size >= limits.partials || this.link.partials.count >= limits.partialsInAll)) {
        this.#failContract(`more unfinished elements than limits.partials (${limits.partials}) or limits.partialsInAll allow`);
        return;
      }
      parts = { chunks: [], bytes: 0, since: this.#connection.clock.now() };
      this.#parts.set(number, parts);
      this.link.partials.begin(this);
    }
    if (!isLast && part.length < TINY_PART && !this.link.odd(part.length === 0 ? 10 : 1)) return;
    parts.chunks.push(part);
    parts.bytes += part.length;
    this.link.partials.bytes += part.length;
    const most = this.elementSize || limits.element;
    if (parts.bytes > most) this.#failContract(`an element above ${most} bytes (limits.element, or the fixed size)`);
    else if (parts.chunks.length > limits.parts) this.#failContract(`an element of more than ${limits.parts} parts (limits.parts)`);
    else if (this.link.partials.bytes > limits.partialBytes) this.#failContract("unfinished elements above limits.partialBytes");
    else if (isLast) this.#deliverJoined(number, parts);
  }

  /** When the oldest unfinished element began, Infinity if there is none. */
  oldestPart() {
    return Math.min(...[...this.#parts.values()].map((parts) => parts.since), Infinity);
  }

  failPartials() {
    this.#failContract(`an element was unfinished for ${this.#connection.limits.partialAge} ms (limits.partialAge)`);
  }

  complete() {
    if (this.#parts.size > 0) {
      this.#failContract("the stream completed within an element", { isEnded: true });
      return;
    }
    if (this.isOver) return;
    this.#end();
    this.#call("onComplete");
  }

  /** End the stream with an error, which the server has sent already. */
  endWith(error) {
    if (this.isOver) return;
    this.#end();
    this.#call("onError", error);
  }

  /** End the stream with an error of this side: the server gets a cancel. */
  fail(error) {
    if (this.isOver) return;
    this.cancel();
    this.#call("onError", error);
  }

  // --- inside

  #deliverJoined(number, parts) {
    if (this.elementSize > 0 && parts.bytes !== this.elementSize) {
      this.#failContract(`an element of ${parts.bytes} bytes on a stream whose elements have ${this.elementSize}`);
      return;
    }
    this.#parts.delete(number);
    this.link.partials.end(this, 1, parts.bytes);
    const element = parts.chunks.length === 1 ? parts.chunks[0] : join(parts.chunks, parts.bytes);
    this.#deliver(element, 0, element.length);
  }

  #restart() {
    this.restarts += 1;
    if (this.restarts > 1) return;
    globalThis.console?.warn(
      `penstock: "${this.name}" was lost and is read again from its beginning: it has no positions, so elements may be missing or come ` +
        "twice; restarts counts how often (said once for each stream)",
    );
  }

  #deliver(data, from, to) {
    this.place.count();
    let element;
    try {
      element = this.#decode(data, from, to);
    } catch (cause) {
      const what = `an element of "${this.name}" cannot be decoded: ${cause.message}`;
      this.fail(new ProtocolError(`${what}. The two sides must agree on the serializer; try the option type`, { cause }));
      return;
    }
    this.#call("onNext", element, to - from);
  }

  #failContract(what, { isEnded = false } = {}) {
    const error = new ProtocolError(`stream "${this.name}": ${what}. The author of the server must act`, { reason: "protocol:demand" });
    if (isEnded) this.endWith(error);
    else this.fail(error);
  }

  /** Call the subscriber. A subscriber that throws has broken rule 2.13: its stream ends, and no other one. */
  #call(method, ...values) {
    try {
      this.#subscriber[method](...values);
    } catch (error) {
      this.cancel();
      reportFault(error);
    }
  }

  #end() {
    this.isOver = true;
    let bytes = 0;
    for (const parts of this.#parts.values()) bytes += parts.bytes;
    if (this.#parts.size > 0) this.link?.partials.end(this, this.#parts.size, bytes);
    this.unfinished = this.#parts.size;
    this.#parts.clear();
    this.#connection.forget(this);
    this.onEnd();
  }
}

/** Report an error of the program as an error of a listener is reported: it must not end the connection. */
function reportFault(error) {
  if (typeof globalThis.reportError === "function") globalThis.reportError(error);
  else
    queueMicrotask(() => {
      throw error;
    });
}

/** A cancelled stream whose end has not arrived. Its late elements are delimited and dropped. */
class RetiredStream {
  #link;
  #lateBytes = 0;

  constructor(link, stream, now) {
    this.#link = link;
    this.elementSize = stream.elementSize;
    // An element that was begun has used its demand, and its last part may be on its way.
    this.outstanding = stream.outstanding + stream.unfinished;
    this.since = now;
  }

  begin(elementSize) {
    this.elementSize = elementSize;
  }

  complete() {}

  endWith() {}

  receiveElement(_data, from, to) {
    this.#drop(1, to - from);
  }

  receivePacked(count) {
    this.#drop(count, count * this.elementSize);
  }

  receivePart(_number, part, isLast) {
    this.#drop(isLast ? 1 : 0, part.length);
    if (!isLast && part.length < TINY_PART) this.#link.odd(part.length === 0 ? 10 : 1);
  }

  #drop(count, bytes) {
    this.outstanding -= count;
    this.#lateBytes += bytes;
    if (this.#lateBytes > this.#link.limits.late) this.#link.refuse(new Refusal("limit:late", "a cancelled stream went on"));
    else if (this.outstanding < 0) this.#link.odd(count);
  }
}

// ------------------------------------------------------------------------------------------------------------- one WebSocket

/** One WebSocket: handshake, streams by id, keepalive, goodbye. It reports its opening and its end to the connection, once each. */
class Link {
  isClosing = false; // nothing that arrives is decoded any more
  openedAt = null;
  extensions = new Set(); // the ids that both hellos list
  #connection;
  #socket;
  #decoder;
  #timers;
  #out = new Writer();
  #isFlushing = false;
  #waiting = new Set(); // streams with demand that was not sent yet
  #wasReached = false;
  #heardAt = 0;
  #oddities;
  #hasCredentials = false;
  #hasSeenCredentials = false; // those of the server
  #saidGoodbye = false;
  #isOver = false;
  #fault = ""; // what npm's `ws` tells about a failed connection; browsers tell nothing

  constructor(connection, socket) {
    this.#connection = connection;
    this.#socket = socket;
    this.limits = connection.limits;
    this.#timers = new Timers(connection.clock);
    this.partials = new PartialElements(this.#timers, connection);
    this.streams = new StreamTable(this, connection.clock);
    this.#decoder = new Decoder(new Receiver(this, connection), this.limits);
    this.#oddities = new Oddities(this.limits.oddities, connection.clock);
    socket.binaryType = "arraybuffer";
    socket.addEventListener("open", () => this.#onOpen());
    socket.addEventListener("message", (event) => this.#onMessage(event));
    socket.addEventListener("error", (event) => {
      this.#fault = event.message ?? "";
      // The WebSocket of Node 20 reports a failed connection with "error" alone, without the "close" that should follow at once.
      this.#timers.set("error", CLOSE_AFTER_ERROR, () => this.#onClose({}));
    });
    socket.addEventListener("close", (event) => this.#onClose(event));
    this.#timers.set("handshake", this.limits.handshake, () => {
      const what = `the server at ${connection.url} did not finish the handshake within ${this.limits.handshake} ms (limits.handshake)`;
      this.#endNow("limit:handshake", new ConnectionLost(`${what}. Is it a server of Penstock?`));
    });
  }

  // --- for the connection

  /** Open a stream: subscribe, or a request with data. */
  open(stream) {
    if (stream.data !== null && !this.extensions.has(REQUESTS_ID)) {
      const what = "this server takes no requests with a payload: its hello does not list extension 7";
      stream.fail(new UsageError(`${what}. Put the values into the name, as in "price/EURUSD?cents=7"`));
      return;
    }
    const id = this.streams.add(stream);
    stream.attach(this, id);
    const demand = wireDemand(stream.outstanding);
    if (stream.data === null) write.subscribe(this.#out, { publisher: stream.place.name, subscriber: id, demand });
    else this.#writeRequest(id, stream.data);
    this.flushLater();
  }

  /** Send the demand of a stream, and all that waits, at the end of this task: many small calls become one send. */
  flushLater(stream = null) {
    if (stream !== null) this.#waiting.add(stream);
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    queueMicrotask(() => {
      this.#isFlushing = false;
      this.#flush();
    });
  }

  cancel(stream) {
    this.#waiting.delete(stream);
    write.cancel(this.#out, { subscriber: stream.id });
    this.streams.retire(stream);
    this.flushLater();
  }

  /** Say goodbye, wait for the server's, and close. */
  close(reason = "") {
    if (this.#isOver || this.#saidGoodbye) return;
    this.#timers.clearAll();
    if (this.openedAt === null) {
      this.#closeSocket(1000);
      return;
    }
    this.#flush();
    this.#sayGoodbye(reason);
    // Elements that are on their way are decoded and dropped, until the server's goodbye ends the wait.
    this.#timers.set("goodbye", this.limits.goodbye, () => this.#closeSocket(1000));
  }

  /** Close at once, without waiting for the server's goodbye. */
  abandon(error) {
    this.#endNow("", error);
  }

  /** End the connection because of a fault of the server: goodbye with the reason, and close. */
  refuse(refusal) {
    if (refusal.reason === "version 0") {
      this.#endNow(refusal.reason, new ProtocolError(`${refusal.message}. Update one of the two`, { reason: refusal.reason }));
      return;
    }
    const what = `the server at ${this.#connection.url} broke the protocol (${refusal.reason}): ${refusal.message}`;
    this.#endNow(refusal.reason, new ProtocolError(`${what}. Report it to the author of the server`, { reason: refusal.reason }));
  }

  // --- for the streams

  /** Count oddities. Returns false if there were too many, which has ended the connection. */
  odd(count) {
    if (!this.#oddities.spend(count)) this.refuse(new Refusal("limit:glitches", "too many odd messages in too short a time"));
    return !this.isClosing;
  }

  // --- for the receiver

  /** Write a message, such as `say("cancel", { subscriber: 1 })`; it is sent at the end of this task. */
  say(name, fields) {
    write[name](this.#out, fields);
    this.flushLater();
  }

  onHello() {
    if (this.#connection.bearer === null) {
      this.#onHandshakeEnd();
    } else if (this.extensions.has(AUTH_ID)) {
      this.#sendCredentials();
    } else {
      const what = "this server examines no credentials: its hello does not list extension 2";
      this.#endNow("auth", new AuthRefused(`${what}. Leave out the option bearer, or add authenticate to the service`));
    }
  }

  onVerdict(body) {
    const isDue = this.#hasCredentials && this.openedAt === null;
    if (!isDue || body.length !== 1 || body[0] !== 1) throw new Refusal("protocol:auth", "a wrong verdict");
    this.#onHandshakeEnd();
  }

  /** Let the server in, which has shown credentials behind its verdict: this client examines none. */
  onServerCredentials() {
    const isDue = this.#hasCredentials && this.openedAt !== null && !this.#hasSeenCredentials;
    if (!isDue) throw new Refusal("protocol:auth", "credentials that were not due");
    this.#hasSeenCredentials = true;
    write.extension(this.#out, { type: VERDICT, body: new Uint8Array([1]) });
    this.flushLater();
  }

  onGoodbye(reason) {
    const isAnswer = this.#saidGoodbye;
    this.isClosing = true;
    this.#sayGoodbye("");
    this.#finish(goodbyeError(reason, this.#connection));
    // The side whose goodbye was answered closes first. The other one waits for it, but not for ever.
    if (isAnswer) this.#closeSocket(1000);
    else this.#timers.set("goodbye", this.limits.goodbye, () => this.#closeSocket(1000));
  }

  // --- the WebSocket

  #onOpen() {
    if (this.#isOver) return;
    this.#wasReached = true;
    this.#heardAt = this.#connection.clock.now();
    write.clientHello(this.#out, { extensions: this.#connection.extensions });
    this.#send();
  }

  #onMessage(event) {
    if (this.#isOver) return;
    this.#heardAt = this.#connection.clock.now();
    try {
      if (typeof event.data === "string") throw new Refusal("protocol", "a text message; RS.io has binary messages only");
      if (event.data.byteLength > this.limits.message) throw tooLong("limit:frame", event.data.byteLength, this.limits.message);
      if (!this.isClosing) this.#decoder.feed(new Uint8Array(event.data));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.refuse(error);
    }
  }

  #onClose(event) {
    this.#timers.clearAll();
    if (this.#isOver) return;
    if (this.#saidGoodbye) {
      this.#closeSocket(1000);
      return;
    }
    const { url } = this.#connection;
    const code = event.code ? ` (WebSocket close code ${event.code}${event.reason ? `: ${JSON.stringify(event.reason)}` : ""})` : "";
    if (!this.#wasReached) {
      const fault = this.#fault ? `: ${this.#fault}` : "";
      const causes = "Is a server listening there, does it allow this page's origin (ws.origins), and is its certificate valid?";
      this.#finish(new ConnectionLost(`${url} could not be reached${fault}${code}. ${causes}`));
    } else {
      this.#finish(new ConnectionLost(`the connection to ${url} ended without a goodbye${code}. Pass reconnect to go on by itself`));
    }
  }

  #flush() {
    if (this.#isOver) return;
    for (const stream of this.#waiting) {
      if (!stream.isOver && stream.unsent > 0) write.request(this.#out, { subscriber: stream.id, demand: wireDemand(stream.unsent) });
      stream.unsent = 0;
    }
    this.#waiting.clear();
    // After a goodbye nothing is sent.
    if (this.#saidGoodbye) this.#out.take();
    else this.#send();
  }

  #sayGoodbye(reason) {
    if (this.#saidGoodbye) return;
    this.#saidGoodbye = true;
    write.goodbye(this.#out, { reason });
    this.#send();
  }

  #send() {
    if (this.#out.length === 0 || this.#socket.readyState !== 1) return;
    this.#socket.send(this.#out.take());
    if (!this.#saidGoodbye && this.#socket.bufferedAmount > this.limits.outgoing) {
      const what = `${this.#socket.bufferedAmount} bytes wait for the network, above limits.outgoing (${this.limits.outgoing})`;
      this.#endNow("slow-reader", new ConnectionLost(`${what}: the server does not read, or the network is slow`));
    }
  }

  #closeSocket(code) {
    this.#timers.clearAll();
    this.#socket.close(code);
    this.#finish(new ConnectionClosed("this program closed the connection", { who: "you" }));
  }

  /** Send a goodbye and close at once: bytes behind a fault cannot be decoded, so the server's goodbye could not be found. */
  #endNow(reason, error) {
    if (this.#isOver) return;
    this.isClosing = true;
    this.#out.take();
    this.#sayGoodbye(reason);
    // Programs may use 1000 and 3000 to 4999 only. The server has read the reason in the goodbye.
    if (reason === "") this.#socket.close(1000);
    else this.#socket.close(reason.startsWith("protocol") ? 4002 : 4008);
    this.#finish(error);
  }

  #finish(error) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.isClosing = true;
    this.#timers.clearAll();
    this.#waiting.clear();
    this.#connection.onLinkEnd(this, error);
  }

  // --- the handshake

  #writeRequest(id, data) {
    const head = new Writer().varint(id).varint(data.length);
    const first = data.subarray(0, REQUEST_PART);
    write.extension(this.#out, { type: REQUEST_WITH_DATA, body: head.raw(first).take() });
    for (let at = REQUEST_PART; at < data.length; at += REQUEST_PART) {
      const body = new Writer().varint(id).raw(data.subarray(at, at + REQUEST_PART)).take();
      write.extension(this.#out, { type: MORE_DATA, body });
    }
  }

  async #sendCredentials() {
    try {
      const token = await this.#connection.bearer();
      if (this.#isOver || this.isClosing) return;
      this.#hasCredentials = true;
      const body = new Writer().str("bearer").bytes(UTF8.encode(token)).take();
      write.extension(this.#out, { type: CREDENTIALS, body });
      this.#send();
    } catch (cause) {
      this.#endNow("", new UsageError(`the function bearer failed: ${cause.message}`, { cause }));
    }
  }

  #onHandshakeEnd() {
    this.openedAt = this.#connection.clock.now();
    this.#timers.clear("handshake");
    this.#connection.onLinkOpen(this);
    const { keepalive } = this.#connection;
    if (keepalive !== null && this.extensions.has(KEEPALIVE_ID)) this.#watch(keepalive);
  }

  #watch({ interval, timeout }) {
    const { clock, random } = this.#connection;
    const silence = interval * (0.85 + 0.3 * random());
    const look = () => {
      const silentFor = clock.now() - this.#heardAt;
      if (silentFor < silence) this.#timers.set("keepalive", silence - silentFor, look);
      else ping();
    };
    const ping = () => {
      const sentAt = clock.now();
      write.extension(this.#out, { type: PING, body: new Uint8Array(0) });
      this.#send();
      this.#timers.set("keepalive", timeout, () => {
        if (this.#heardAt >= sentAt) {
          look();
        } else if (clock.now() - sentAt > timeout + LATE_TIMER) {
          // The page was frozen. The answer may wait in the browser, so the server gets another chance.
          ping();
        } else {
          const what = `the server at ${this.#connection.url} was silent for ${Math.round(clock.now() - this.#heardAt)} ms`;
          this.#endNow("keepalive", new ConnectionLost(`${what} and answered no ping. It hangs, or the network is gone`));
        }
      });
    };
    this.#timers.set("keepalive", silence, look);
  }
}

const EXTENSION_OF = new Map([
  [PING, KEEPALIVE_ID],
  [PONG, KEEPALIVE_ID],
  [CREDENTIALS, AUTH_ID],
  [VERDICT, AUTH_ID],
  [CONTENT, CONTENT_ID],
  [PLACES, POSITION_ID],
  [POSITIONS, POSITION_ID],
]);

/** Takes the messages of the server from the decoder, and gives each to its stream or to the link. */
class Receiver {
  #link;
  #connection;
  #pingAt = -Infinity; // when the server's last ping came
  #pingStrikes = 0;

  constructor(link, connection) {
    this.#link = link;
    this.#connection = connection;
    this.streams = link.streams;
  }

  get isClosing() {
    return this.#link.isClosing;
  }

  receiveHello(extensions) {
    for (const id of extensions) if (this.#connection.extensions.includes(id)) this.#link.extensions.add(id);
    this.#link.onHello();
  }

  receiveGoodbye(reason) {
    this.#link.onGoodbye(reason);
  }

  receiveSubscribe(_publisher, subscriber) {
    // This module publishes nothing. A refusal is cheap, and a flood of subscribes uses up the budget of oddities.
    if (this.#link.odd(1)) this.#link.say("onError", { subscriber, error: "no such publisher" });
  }

  receiveRequest() {
    this.#link.odd(1);
  }

  receiveCancel() {
    this.#link.odd(1);
  }

  receiveOnSubscribe(subscriber, elementSize) {
    const stream = this.streams.get(subscriber);
    if (stream === undefined || stream.elementSize >= 0) throw notBegun(subscriber);
    stream.begin(elementSize);
  }

  receiveComplete(subscriber) {
    this.streams.release(subscriber).complete();
  }

  receiveError(subscriber, text) {
    const stream = this.streams.release(subscriber);
    stream.endWith(new PublisherFailed(publisherText(stream, text), { reason: text }));
  }

  checkExtension(type, length, hex) {
    const id = EXTENSION_OF.get(type);
    if (id === undefined || !this.#link.extensions.has(id)) throw new Refusal(`protocol:type ${hex}`, `type ${hex} without its extension`);
    if (id === POSITION_ID && length > PLACES_BYTES) throw new Refusal("protocol:position", `a message of positions of ${length} bytes`);
    if (id === KEEPALIVE_ID && length > PING_BYTES) throw new Refusal("protocol:ping", `a ping of ${length} bytes`);
  }

  receiveExtension(type, body) {
    if (type === PING) this.#onPing(body);
    else if (type === VERDICT) this.#link.onVerdict(body);
    else if (type === CREDENTIALS) this.#link.onServerCredentials();
    else if (type === CONTENT) this.#onContent(body);
    else if (type === POSITIONS) this.#onPositions(body);
    else if (type === PLACES) this.#link.odd(1); // of a subscribe, which is refused
    else if (type !== PONG) throw new Refusal(`protocol:type 0x${type.toString(16)}`, "a message that only a client sends");
  }

  #onContent(body) {
    const fields = readContent(body);
    const stream = this.streams.get(fields.subscriber);
    if (stream instanceof RetiredStream) return;
    if (stream === undefined || stream.elementSize >= 0 || stream.announced !== null) {
      throw new Refusal(`protocol:content ${fields.subscriber}`, `content of stream ${fields.subscriber}, which is not open, or has begun`);
    }
    stream.announced = fields.serializer;
  }

  #onPositions(body) {
    const [subscriber, first, earliest, latest] = readPositions(body);
    const stream = this.streams.get(subscriber);
    if (stream instanceof RetiredStream) return;
    if (stream === undefined || stream.elementSize >= 0) {
      throw new Refusal("protocol:position", `positions of stream ${subscriber}, which is not open, or has begun`);
    }
    if (!(BigInt(earliest) <= BigInt(first) && BigInt(first) <= BigInt(latest))) throw new Refusal("protocol:position", "positions out of order");
    stream.learn(first, latest);
  }

  #onPing(body) {
    const now = this.#connection.clock.now();
    this.#pingStrikes = now - this.#pingAt < PING_TOO_SOON ? this.#pingStrikes + 1 : 0;
    this.#pingAt = now;
    if (this.#pingStrikes >= PING_STRIKES) throw new Refusal("limit:pings", "pings too soon after one another");
    this.#link.say("extension", { type: PONG, body });
  }
}

/** The streams of a link by their ids: open ones, and cancelled ones without an end. The ids count up and are never used again. */
class StreamTable {
  #link;
  #clock;
  #streams = new Map(); // id -> ReceivingStream or RetiredStream
  #nextId = 0;
  #retired = 0;

  constructor(link, clock) {
    this.#link = link;
    this.#clock = clock;
  }

  get(id) {
    return this.#streams.get(id);
  }

  /** Enter a stream, and return its id. */
  add(stream) {
    this.#streams.set(this.#nextId, stream);
    this.#nextId += 1;
    return this.#nextId - 1;
  }

  /** Remove the stream that the server has ended, and return it. */
  release(id) {
    const stream = this.#streams.get(id);
    if (stream === undefined) throw notBegun(id);
    this.#streams.delete(id);
    if (stream instanceof RetiredStream) this.#retired -= 1;
    return stream;
  }

  /** Replace a cancelled stream by one that drops late elements. */
  retire(stream) {
    const { limits } = this.#link;
    const retired = new RetiredStream(this.#link, stream, this.#clock.now());
    // Deleted first, so that the table is in the order of the cancels.
    this.#streams.delete(stream.id);
    this.#streams.set(stream.id, retired);
    this.#retired += 1;
    if (this.#retired > limits.retired / 2) this.#forgetOldest(this.#clock.now());
    if (this.#retired > limits.retired) this.#link.refuse(new Refusal("limit:ids", "the server did not end cancelled streams"));
  }

  #forgetOldest(now) {
    for (const [id, stream] of this.#streams) {
      if (!(stream instanceof RetiredStream)) continue;
      if (now - stream.since < RETIRED_AGE) return;
      this.#streams.delete(id);
      this.#retired -= 1;
    }
  }
}

/** The unfinished elements of a link: their number, their bytes, and a timer for the oldest one. */
class PartialElements {
  count = 0;
  bytes = 0;
  #streams = new Set();
  #timers;
  #connection;

  constructor(timers, connection) {
    this.#timers = timers;
    this.#connection = connection;
  }

  begin(stream) {
    this.count += 1;
    this.#streams.add(stream);
    if (!this.#timers.has("partial")) this.#timers.set("partial", this.#connection.limits.partialAge, () => this.#check());
  }

  end(stream, count, bytes) {
    this.count -= count;
    this.bytes -= bytes;
    if (stream.isOver || stream.oldestPart() === Infinity) this.#streams.delete(stream);
  }

  #check() {
    const { clock, limits } = this.#connection;
    const now = clock.now();
    let oldest = Infinity;
    for (const stream of this.#streams) {
      if (now - stream.oldestPart() >= limits.partialAge) stream.failPartials();
      else oldest = Math.min(oldest, stream.oldestPart());
    }
    if (oldest !== Infinity) this.#timers.set("partial", oldest + limits.partialAge - now, () => this.#check());
  }
}

/** A budget of odd messages, refilled at ODDITIES_PER_SECOND. */
class Oddities {
  #most;
  #left;
  #clock;
  #at;

  constructor(most, clock) {
    this.#most = most;
    this.#left = most;
    this.#clock = clock;
    this.#at = clock.now();
  }

  /** Return whether the budget was large enough. */
  spend(count) {
    const now = this.#clock.now();
    this.#left = Math.min(this.#most, this.#left + ((now - this.#at) / 1000) * ODDITIES_PER_SECOND) - count;
    this.#at = now;
    return this.#left >= 0;
  }
}

/** Named timers of one link: at most one of each name. */
class Timers {
  #clock;
  #timers = new Map();

  constructor(clock) {
    this.#clock = clock;
  }

  has(name) {
    return this.#timers.has(name);
  }

  set(name, delay, callback) {
    this.clear(name);
    const timer = this.#clock.setTimeout(() => {
      this.#timers.delete(name);
      callback();
    }, delay);
    this.#timers.set(name, timer);
  }

  clear(name) {
    if (this.#timers.has(name)) this.#clock.clearTimeout(this.#timers.get(name));
    this.#timers.delete(name);
  }

  clearAll() {
    for (const name of [...this.#timers.keys()]) this.clear(name);
  }
}

function wireDemand(demand) {
  return demand === Infinity ? UNBOUNDED : demand;
}

/** Return the fields of a message of the extension content: stream, serializer, schema. */
function readContent(body) {
  const broken = new Refusal("protocol:content", "a message of the extension content that cannot be read");
  const after = { next: 0 };
  const number = () => {
    const value = readVarint(body, after.next, after);
    if (value < 0) throw broken;
    return value;
  };
  const text = () => {
    const length = number();
    const from = after.next;
    if (from + Number(length) > body.length) throw broken;
    after.next = from + length;
    return LENIENT_UTF8.decode(body.subarray(from, after.next));
  };
  const fields = { subscriber: number(), serializer: text(), schema: text() };
  if (after.next !== body.length) throw broken;
  return fields;
}

/** Return the four numbers of a message of positions: stream, first, earliest, latest. */
function readPositions(body) {
  const numbers = [];
  const after = { next: 0 };
  while (after.next < body.length && numbers.length < 4) {
    const value = readVarint(body, after.next, after);
    if (value < 0) break; // it is cut off
    numbers.push(value);
  }
  if (numbers.length !== 4 || after.next !== body.length) throw new Refusal("protocol:position", "positions that cannot be read");
  return numbers;
}

/** Return a text of the server for an error message: quoted and cut, so that it cannot be mistaken for words of this module. */
function quoted(text) {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);
}

const STREAM_ADVICE = new Map([
  ["no such publisher", "Check the name and its parameters. A publisher that you may not read has the same answer"],
  ["draining", "The server is shutting down: try another server, or the same one later"],
  ["refused", "The server has no room for another stream of this connection: cancel a stream, or open another connection"],
]);

function publisherText(stream, text) {
  const what = stream.elementSize < 0 ? "refused" : "ended";
  return `the server ${what} the stream "${stream.name}": ${quoted(text)}. ${STREAM_ADVICE.get(text) ?? "Look into the log of the server"}`;
}

// A connection that the server ended for one of these reasons may be made again.
const TEMPORARY = /^(shutdown|drain|idle|keepalive|internal|places:.*)$/;

function goodbyeError(reason, { url }) {
  const token = reason.split(" ")[0];
  if (token === "auth") {
    return new AuthRefused(`the server at ${url} accepts no such credentials. Check the option bearer`, { reason });
  }
  if (token === "version") {
    return new ProtocolError(`the server at ${url} speaks another version of RS.io: ${quoted(reason)}. Update one of the two`, { reason });
  }
  const who = /^(limit|protocol)/.test(token) ? "you" : "the server";
  const advice = TEMPORARY.test(token) ? "Connect again, or pass reconnect" : "The page of reasons in Penstock's reference explains it";
  return new ConnectionClosed(`the server at ${url} said goodbye${reason ? `: ${quoted(reason)}` : ""}. ${advice}`, { who, reason });
}

function mayReconnect(error) {
  return error instanceof ConnectionLost || (error instanceof ConnectionClosed && error.who !== "you" && TEMPORARY.test(error.reason));
}

// ------------------------------------------------------------------------------------------------------------- the connection

/** A publisher of the server, by name: `subscribe` opens one stream for each subscriber. */
class Publisher {
  #connection;
  #name;
  #options;

  constructor(connection, name, options) {
    this.#connection = connection;
    this.#name = name;
    this.#options = options;
  }

  /** Call onSubscribe at once, then send the subscribe with the demand that onSubscribe has requested. */
  subscribe(subscriber) {
    for (const method of ["onSubscribe", "onNext", "onError", "onComplete"]) {
      // rule 1.9: the wrong argument is the only fault for which subscribe throws.
      if (typeof subscriber?.[method] !== "function") throw new TypeError(`a subscriber has the method ${method}`);
    }
    this.#connection.start(this.#name, subscriber, this.#options);
  }
}

/** A connection to a server. With `reconnect` it outlives its WebSockets, and its streams go on. Made by `connect`. */
class Connection {
  /** "connecting", "open", "waiting" (for the next attempt, or for the page to come back), or "closed". */
  state = "connecting";
  /** Ends with null when the program has closed the connection, else with the error that ended it. It never rejects. */
  closed;
  #options;
  #streams = new Set();
  #link = null;
  #failed = 0; // attempts in a row without a connection that stayed
  #timer = null;
  #isFrozen = false;
  #resolveOpen;
  #rejectOpen;
  #resolveClosed;
  #error = null;

  /** @private `connect` makes connections. */
  constructor(url, options) {
    this.url = url;
    this.#options = options;
    this.clock = options.clock;
    this.random = options.random;
    this.limits = options.limits;
    this.keepalive = options.keepalive;
    this.bearer = options.bearer;
    this.extensions = [
      ...(this.keepalive === null ? [] : [KEEPALIVE_ID]),
      ...(this.bearer === null ? [] : [AUTH_ID]),
      CONTENT_ID,
      POSITION_ID,
      REQUESTS_ID,
    ];
    this.opened = new Promise((resolve, reject) => {
      this.#resolveOpen = resolve;
      this.#rejectOpen = reject;
    });
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    this.#watchPage(options.page, options.signal);
    this.#attempt();
  }

  /** Return a publisher of the server, for callbacks. */
  publisher(name, options = {}) {
    checkPlaces(checkedName(name, this.limits), options, this.limits);
    return new Publisher(this, name, this.#withDefaults(options));
  }

  /** Return the elements of a publisher as an async iterable, with automatic demand. */
  stream(name, options = {}) {
    return new Stream(this, checkedName(name, this.limits), this.#withDefaults(options));
  }

  /** Ask for one value: the first element of a publisher, or the answer to a request with a payload. */
  async ask(name, payload = undefined, options = {}) {
    checkedName(name, this.limits);
    const data = payload === undefined ? null : requestData(name, encodePayload(payload));
    const most = this.limits.element + this.limits.name + 16;
    if (data !== null && data.length > most) {
      throw new UsageError(`the payload has ${data.length} bytes; about ${most} are allowed (limits.element)`);
    }
    return new Promise((resolve, reject) => {
      this.start(name, new Answer(resolve, reject, name), { ...this.#withDefaults(options), data });
    });
  }

  /**
   * Return the position of the first element of a log that was appended at `time` or later, for `start`: that of the oldest element if older
   * ones were dropped, and that of the next one if none is as late. `time` is a Date, or milliseconds since 1970.
   */
  async positionAt(name, time, options = {}) {
    const milliseconds = Number(time);
    if (!Number.isFinite(milliseconds) || !(time instanceof Date || typeof time === "number")) {
      throw new UsageError(`${quoted(String(time))} is no time; pass a Date, or milliseconds since 1970`);
    }
    const words = `positions&at=${(milliseconds / 1000).toFixed(6)}`;
    const answer = await this.ask(withWords(name, words), undefined, { ...options, type: "json" });
    const found = Object.values(answer ?? {});
    if (found.length === 0 || found.some((each) => !Number.isSafeInteger(each?.at))) throw new ProtocolError(`the server has sent no position of a time in ${quoted(name)}`);
    if (found.length !== 1) {
      throw new UsageError(`${quoted(name)} has the partitions ${Object.keys(answer).join(", ")}; name one, as in ${withWords(name, `partition=${Object.keys(answer)[0]}`)}`);
    }
    return found[0].at;
  }

  /** End all streams, say goodbye, and close. The promise ends when the goodbye was answered, or after `limits.goodbye`. */
  async close() {
    this.#finish(null);
    await this.closed;
  }

  /** Describe the connection in one line. */
  toString() {
    return `Connection(${this.url}, ${this.state}, ${this.#streams.size} streams)`;
  }

  // --- for the classes of this module

  /** @private */
  start(name, subscriber, options) {
    const stream = new ReceivingStream(this, name, subscriber, options);
    const { signal } = options;
    const subscription = Object.freeze({
      request: (n) => stream.request(n),
      cancel: () => stream.cancel(),
      get position() {
        return stream.place.next;
      },
      get restarts() {
        return stream.restarts;
      },
    });
    this.#streams.add(stream);
    const onAborted = () => stream.fail(signal.reason);
    signal?.addEventListener("abort", onAborted);
    stream.onEnd = () => signal?.removeEventListener("abort", onAborted);
    stream.begun(subscription);
    if (stream.isOver) return;
    if (this.state === "closed") stream.endWith(streamError(this.#error));
    else if (signal?.aborted) stream.fail(signal.reason);
    else if (this.state === "open") this.#link.open(stream);
  }

  /** @private */
  forget(stream) {
    this.#streams.delete(stream);
  }

  /** @private */
  onLinkOpen(link) {
    this.#setState("open");
    this.#resolveOpen(this);
    for (const stream of [...this.#streams]) if (!stream.isOver && this.#link === link) link.open(stream);
  }

  /** @private */
  onLinkEnd(link, error) {
    if (link !== this.#link) return;
    this.#link = null;
    if (this.state === "closed") {
      this.#resolveClosed(this.#error);
      return;
    }
    const { reconnect } = this.#options;
    if (link.openedAt !== null && reconnect !== null && this.clock.now() - link.openedAt >= reconnect.healthy) this.#failed = 0;
    for (const stream of [...this.#streams]) {
      stream.detach();
      // The server may have acted on it, so it is not sent twice.
      if (stream.data !== null && stream.id >= 0) stream.endWith(error);
    }
    const mayTry = reconnect !== null && mayReconnect(error) && this.#failed < reconnect.attempts;
    if (mayTry) this.#wait(error);
    else this.#finish(error);
  }

  // --- inside

  #withDefaults(options) {
    return { ...options, decoders: { ...this.#options.decoders, ...options.decoders } };
  }

  #attempt() {
    this.#failed += 1;
    this.#setState("connecting");
    let socket;
    try {
      // The third argument is for npm's `ws` alone; a browser ignores it.
      const bounds = { maxPayload: this.limits.message, perMessageDeflate: false };
      socket = new this.#options.WebSocket(this.url, ["rsio.v0"], bounds);
    } catch (cause) {
      this.#finish(new UsageError(`${this.url}: ${cause.message}. A page from https can open wss:// only`, { cause }));
      return;
    }
    this.#link = new Link(this, socket);
  }

  /** Wait before the next attempt: a random time up to a bound that doubles, so that a thousand pages do not come at once. */
  #wait(error) {
    this.#setState("waiting", error);
    // The function onState may have closed the connection.
    if (this.#isFrozen || this.state !== "waiting") return;
    const { first, most } = this.#options.reconnect;
    const bound = Math.min(most, first * 2 ** Math.min(Math.max(this.#failed - 1, 0), 40));
    this.#timer = this.clock.setTimeout(() => this.#attempt(), this.random() * bound);
  }

  #finish(error) {
    if (this.state === "closed") return;
    this.#error = error;
    this.clock.clearTimeout(this.#timer);
    this.#unwatchPage();
    this.#setState("closed", error);
    for (const stream of [...this.#streams]) stream.endWith(streamError(error));
    this.#rejectOpen(streamError(error));
    if (this.#link === null) this.#resolveClosed(error);
    else this.#link.close();
  }

  #setState(state, error = null) {
    if (this.state === state && state !== "connecting") return;
    this.state = state;
    try {
      this.#options.onState?.(state, error);
    } catch (fault) {
      reportFault(fault);
    }
  }

  #unwatchPage = () => {};

  /**
   * Follow the page and the signal. A page that goes into the back-forward cache closes its WebSocket, because browsers do not cache a page
   * with an open one. When it comes back, it connects at once, and the streams go on with the demand that was left.
   */
  #watchPage(page, signal) {
    const onHide = (event) => {
      if (!event.persisted) return;
      if (this.#options.reconnect === null) {
        const what = "the page went into the back-forward cache, which ends its connections";
        this.#finish(new ConnectionLost(`${what}. Pass reconnect, and the streams go on when the page is back`));
        return;
      }
      this.#isFrozen = true;
      this.#failed = 0;
      this.clock.clearTimeout(this.#timer);
      this.#link?.abandon(new ConnectionLost("the page went into the back-forward cache"));
    };
    const onShow = (event) => {
      if (!event.persisted || !this.#isFrozen) return;
      this.#isFrozen = false;
      if (this.state === "waiting") this.#attempt();
    };
    const onAborted = () => this.#finish(signal.reason);
    page?.addEventListener("pagehide", onHide);
    page?.addEventListener("pageshow", onShow);
    signal?.addEventListener("abort", onAborted);
    this.#unwatchPage = () => {
      page?.removeEventListener("pagehide", onHide);
      page?.removeEventListener("pageshow", onShow);
      signal?.removeEventListener("abort", onAborted);
    };
  }
}

function streamError(error) {
  return error ?? new ConnectionClosed("this program closed the connection", { who: "you" });
}

/** The subscriber of `ask`: one value. */
class Answer {
  #resolve;
  #reject;
  #name;
  #subscription = null;

  constructor(resolve, reject, name) {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#name = name;
  }

  onSubscribe(subscription) {
    this.#subscription = subscription;
    subscription.request(1);
  }

  onNext(value) {
    this.#resolve(value);
    // Later, because the end of the stream usually stands right behind the value. Then there is nothing to cancel.
    queueMicrotask(() => this.#subscription.cancel());
  }

  onError(error) {
    this.#reject(error);
  }

  onComplete() {
    // After a value this has no effect.
    this.#reject(new PublisherFailed(`"${this.#name}" ended without a value. The server must send one, or an error`));
  }
}

// ------------------------------------------------------------------------------------------------------------- the iterator

/**
 * The elements of one stream, for `for await`. It requests as many elements as it may hold, and renews the demand in batches of a quarter.
 *
 * It holds at most `demand` elements and `buffer` bytes. Before it knows the length of an element it assumes the largest one, so it begins
 * with a small demand. Leaving the loop cancels the stream.
 */
class Stream {
  #connection;
  #name;
  #options;
  #demand;
  #buffer;
  #subscription = null;
  #values = [];
  #sizes = [];
  #head = 0;
  #bytes = 0;
  #largest;
  #outstanding = 0;
  #waiter = null;
  #isIterated = false;
  #isOver = false;
  #error = null;

  constructor(connection, name, options) {
    const { limits } = connection;
    this.#connection = connection;
    this.#name = name;
    this.#options = options;
    this.#demand = atLeastOne("demand", options.demand ?? limits.demand);
    this.#buffer = atLeastOne("buffer", options.buffer ?? limits.buffer);
    this.#largest = limits.element;
    checkPlaces(name, options, limits);
  }

  /**
   * The position of the element that the reader gets next; null if the publisher has no positions, or they are not known yet. Store it
   * with the results of the elements before, and pass it as `start` to go on.
   */
  get position() {
    const next = this.#subscription?.position ?? null;
    return next === null ? null : positionAfter(next, this.#head - this.#values.length);
  }

  /** How often the publisher began anew after a lost connection. One with positions goes on where it was, which is not counted. */
  get restarts() {
    return this.#subscription?.restarts ?? 0;
  }

  [Symbol.asyncIterator]() {
    if (this.#isIterated) throw new UsageError(`"${this.#name}" was iterated before: call connection.stream() for another stream`);
    this.#isIterated = true;
    this.#connection.start(this.#name, this.#subscriber(), this.#options);
    return this;
  }

  next() {
    if (!this.#isIterated) this[Symbol.asyncIterator]();
    if (this.#head < this.#values.length) return Promise.resolve({ value: this.#take(), done: false });
    if (this.#isOver) return this.#ending();
    if (this.#waiter !== null) return Promise.reject(new UsageError("next() was called again before it had answered: await it first"));
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
    });
  }

  /** Cancel the stream. A `break` calls this. */
  return(value) {
    this.#isIterated = true;
    this.#isOver = true;
    this.#error = null;
    this.#drop();
    this.#subscription?.cancel();
    this.#wake();
    return Promise.resolve({ value, done: true });
  }

  // --- inside

  #subscriber() {
    return {
      onSubscribe: (subscription) => {
        this.#subscription = subscription;
        this.#renew();
      },
      onNext: (element, bytes) => this.#onNext(element, bytes),
      onError: (error) => {
        // An aborted program wants no more elements; after another error those that have arrived are still delivered.
        if (this.#options.signal?.aborted) this.#drop();
        this.#isOver = true;
        this.#error = error;
        this.#wake();
      },
      onComplete: () => {
        this.#isOver = true;
        this.#wake();
      },
    };
  }

  #onNext(element, bytes) {
    this.#outstanding -= 1;
    this.#largest = this.#largest === this.#connection.limits.element ? Math.max(bytes, 1) : Math.max(bytes, this.#largest);
    this.#values.push(element);
    this.#sizes.push(bytes);
    this.#bytes += bytes;
    if (this.#waiter !== null) {
      const { resolve } = this.#waiter;
      this.#waiter = null;
      resolve({ value: this.#take(), done: false });
    } else if (this.#bytes > this.#buffer) {
      const what = `the stream "${this.#name}" holds ${this.#bytes} unread bytes, above ${this.#buffer} (the option buffer)`;
      this.#isOver = true;
      this.#error = new LimitExceeded(`${what}. Read faster, or pass a smaller demand`);
      this.#drop();
      this.#subscription.cancel();
    }
  }

  #take() {
    const value = this.#values[this.#head];
    this.#bytes -= this.#sizes[this.#head];
    this.#values[this.#head] = undefined; // the element must not live as long as the array
    this.#head += 1;
    if (this.#head === this.#values.length) {
      this.#values.length = this.#sizes.length = this.#head = 0;
    } else if (this.#head >= 1024) {
      this.#values.splice(0, this.#head);
      this.#sizes.splice(0, this.#head);
      this.#head = 0;
    }
    this.#renew();
    return value;
  }

  #renew() {
    if (this.#isOver) return;
    const window = Math.min(this.#demand, Math.max(1, Math.floor(this.#buffer / this.#largest)));
    const due = window - this.#outstanding - (this.#values.length - this.#head);
    // In batches: a request for each element would cost a message for each element.
    if (due < Math.max(1, Math.floor(window / 4))) return;
    this.#outstanding += due;
    this.#subscription.request(due);
  }

  #drop() {
    this.#values = [];
    this.#sizes = [];
    this.#head = 0;
    this.#bytes = 0;
  }

  #wake() {
    if (this.#waiter === null) return;
    const { resolve } = this.#waiter;
    this.#waiter = null;
    resolve(this.#ending());
  }

  /** Report the error once, and then the end, as iterators do. */
  #ending() {
    const error = this.#error;
    this.#error = null;
    return error === null ? Promise.resolve({ value: undefined, done: true }) : Promise.reject(error);
  }
}

// ------------------------------------------------------------------------------------------------------------- connect

const KEEPALIVE = Object.freeze({ interval: 20_000, timeout: 20_000 });
const RECONNECT = Object.freeze({ attempts: Infinity, first: 100, most: 30_000, healthy: 10_000 });
const OPTIONS = new Set([
  ...["keepalive", "bearer", "insecure", "reconnect", "signal", "decoders", "limits", "onState", "WebSocket"],
  ...["clock", "random", "page"],
]);

/** Connect to a server of Penstock. The promise ends with the connection when both sides have said hello. */
export async function connect(url, options = {}) {
  const connection = new Connection(checkedUrl(url, options), checkedOptions(options));
  return connection.opened;
}

function checkedUrl(url, { bearer, insecure }) {
  let parsed;
  try {
    parsed = new URL(url);
  } catch (cause) {
    throw new UsageError(`${quoted(String(url))} is no URL. Pass one such as "wss://example.com/"`, { cause });
  }
  if (!["ws:", "wss:"].includes(parsed.protocol)) throw new UsageError(`${parsed.href}: the URL of a server begins with ws:// or wss://`);
  const isLoopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(parsed.hostname);
  if (bearer !== undefined && parsed.protocol === "ws:" && !isLoopback && insecure !== true) {
    throw new UsageError(`${parsed.href}: a token over ws:// can be read on its way. Use wss://, or pass insecure: true`);
  }
  return parsed.href;
}

function checkedOptions(options) {
  const unknown = Object.keys(options).filter((key) => !OPTIONS.has(key));
  if (unknown.length > 0) throw new UsageError(`unknown options: ${unknown.join(", ")}. There are: ${[...OPTIONS].join(", ")}`);
  options.signal?.throwIfAborted();
  const socket = options.WebSocket ?? globalThis.WebSocket;
  if (typeof socket !== "function") {
    const what = "there is no WebSocket here. In Node 20: npm install ws, and connect(url, { WebSocket })";
    throw new UsageError(`${what} with import { WebSocket } from "ws"`);
  }
  const { bearer } = options;
  if (bearer !== undefined && typeof bearer !== "string" && typeof bearer !== "function") {
    throw new UsageError("bearer is a token, or a function that returns one");
  }
  return {
    WebSocket: socket,
    bearer: bearer === undefined ? null : async () => (typeof bearer === "function" ? bearer() : bearer),
    clock: options.clock ?? CLOCK,
    decoders: options.decoders ?? {},
    keepalive: milliseconds("keepalive", options.keepalive ?? true, KEEPALIVE),
    limits: checkedLimits(options.limits ?? {}),
    onState: options.onState,
    page: options.page ?? ("onpagehide" in globalThis ? globalThis : null),
    random: options.random ?? Math.random,
    reconnect: milliseconds("reconnect", options.reconnect ?? false, RECONNECT),
    signal: options.signal,
  };
}

/** Return the values of an option that is true, false, or an object with some of its values. */
function milliseconds(name, given, defaults) {
  if (given === false || given === null) return null;
  const values = { ...defaults, ...(given === true ? {} : given) };
  for (const [key, value] of Object.entries(values)) {
    if (!Object.hasOwn(defaults, key)) throw new UsageError(`${name}.${key}: there are ${Object.keys(defaults).join(", ")}`);
    if (typeof value !== "number" || !(value > 0)) throw new UsageError(`${name}.${key} is ${String(value)}; pass a number above 0`);
  }
  return Object.freeze(values);
}

function checkedLimits(given) {
  for (const [key, value] of Object.entries(given)) {
    if (!Object.hasOwn(LIMITS, key)) throw new UsageError(`limits.${key}: there are ${Object.keys(LIMITS).join(", ")}`);
    atLeastOne(`limits.${key}`, value);
  }
  return Object.freeze({ ...LIMITS, ...given });
}

function atLeastOne(name, value) {
  if (!Number.isSafeInteger(value) || value < 1) throw new UsageError(`${name} is ${String(value)}; pass a whole number from 1 on`);
  return value;
}
