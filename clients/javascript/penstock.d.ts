/** Types of the client of Penstock: RS.io version 0 over WebSocket. */

/** The bounds of a connection. `LIMITS` has the defaults, and a comment for each in penstock.js. */
export interface Limits {
  /** Bytes of one WebSocket message: 16 MiB. */
  readonly message: number;
  /** Bytes of an element in one message of RS.io, of a part, of packed elements together: 1 MiB. */
  readonly frame: number;
  /** Bytes of an element that is joined from parts: 4 MiB. */
  readonly element: number;
  /** Parts of one element: 8,192. */
  readonly parts: number;
  /** Unfinished elements of one stream: 4. */
  readonly partials: number;
  /** Unfinished elements of the connection: 64. */
  readonly partialsInAll: number;
  /** Bytes of all unfinished elements of the connection: 8 MiB. */
  readonly partialBytes: number;
  /** Milliseconds for which an element may stay unfinished: 30 s. */
  readonly partialAge: number;
  /** Elements that an iterator requests and holds: 256. */
  readonly demand: number;
  /** Bytes of elements that an iterator holds: 16 MiB. */
  readonly buffer: number;
  /** Bytes that wait for the network: 8 MiB. */
  readonly outgoing: number;
  /** Bytes of a publisher's name: 1,024. */
  readonly name: number;
  /** Bytes of the text of an error: 4,096. */
  readonly text: number;
  /** Bytes of the reason of a goodbye: 1,024. */
  readonly reason: number;
  /** Ids of extensions in a hello: 64. */
  readonly extensions: number;
  /** Cancelled streams whose end has not arrived: 65,536. */
  readonly retired: number;
  /** Bytes of late elements of one cancelled stream: 32 MiB. */
  readonly late: number;
  /** Odd messages in a burst: 1,000, refilled at 33 a second. */
  readonly oddities: number;
  /** Milliseconds from the start of an attempt to the end of the handshake: 10 s. */
  readonly handshake: number;
  /** Milliseconds to wait for the server's goodbye: 2 s. */
  readonly goodbye: number;
}

export declare const LIMITS: Limits;

/** Demand without bound, 2^63-1. `request(Infinity)` requests it. */
export declare const UNBOUNDED: bigint;

/** The parent of all errors of this module. */
/** The partition of a log that has the elements with this key. */
export declare function partitionOf(key: string | Uint8Array, partitions: readonly string[]): string;

export declare class PenstockError extends Error {
  constructor(message: string, options?: { who?: string; reason?: string; cause?: unknown });
  /** The side that must act. */
  readonly who: "you" | "the server" | "the network";
  /** The token or the text that crossed the wire; empty if there was none. */
  readonly reason: string;
}

/** You must act: a call was wrong. */
export declare class UsageError extends PenstockError {}
/** You must act: a bound of this side was reached. */
export declare class LimitExceeded extends PenstockError {}
/** You must act: the server accepts no such credentials, or takes none. */
export declare class AuthRefused extends PenstockError {}
/** The author of the server must act: it broke the protocol. */
export declare class ProtocolError extends PenstockError {}
/** The server ended the stream, or refused it. */
export declare class PublisherFailed extends PenstockError {}
/** The connection ended without a goodbye, or could not be made. */
export declare class ConnectionLost extends PenstockError {}
/** One side said goodbye. */
export declare class ConnectionClosed extends PenstockError {}

/** The link between a subscriber and its publisher. */
export interface Subscription {
  /** Request elements: a whole number from 1 on, or Infinity. */
  request(n: number): void;
  /** End the stream. */
  cancel(): void;
  /** The position of the element that comes next; null if the publisher has no positions, or they are not known yet. */
  readonly position: Position | null;
  /** How often the publisher began anew after a lost connection. One with positions goes on where it was. */
  readonly restarts: number;
}

/** The number of an element of a log: a bigint above 2^53. */
export type Position = number | bigint;

/** A position, the oldest element that the publisher has, or the next one that it will get. */
export type Place = Position | "earliest" | "latest";

/** A subscriber of Reactive Streams. It must not throw; if it does, its stream is cancelled. */
export interface Subscriber<T> {
  onSubscribe(subscription: Subscription): void;
  /** `bytes` is the encoded length of the element. */
  onNext(element: T, bytes: number): void;
  onError(error: unknown): void;
  onComplete(): void;
}

export interface Publisher<T> {
  subscribe(subscriber: Subscriber<T>): void;
}

/** How elements are decoded: a serializer by its name, or a function. */
export type ElementType<T> = "bytes" | "text" | "json" | (string & {}) | ((bytes: Uint8Array) => T);

export type Decoders = Record<string, (bytes: Uint8Array) => unknown>;

export interface StreamOptions<T> {
  /** The default is the serializer that the server announces, else "bytes". */
  type?: ElementType<T>;
  /** Decoders of further serializers, by their names. */
  decoders?: Decoders;
  /** Ends the stream with `signal.reason`. */
  signal?: AbortSignal;
  /** Where a publisher with positions begins. */
  start?: Place;
  /** The position before which it ends. */
  stop?: Place;
}

export interface IterationOptions<T> extends StreamOptions<T> {
  /** Elements that are requested and held at most. The default is `limits.demand`. */
  demand?: number;
  /** Bytes that are held at most. The default is `limits.buffer`. */
  buffer?: number;
}

/** The elements of one stream. */
export interface ElementStream<T> extends AsyncIterableIterator<T> {
  /** The position of the element that the reader gets next. Pass it as `start` to go on. */
  readonly position: Position | null;
  /** How often the publisher began anew after a lost connection. One with positions goes on where it was. */
  readonly restarts: number;
}

export type State = "connecting" | "open" | "waiting" | "closed";

/** A connection to a server. */
export interface Connection {
  readonly url: string;
  readonly state: State;
  /** Ends with null when the program has closed the connection, else with the error that ended it. It never rejects. */
  readonly closed: Promise<unknown>;
  /** Return a publisher of the server, for callbacks. */
  publisher(name: string, options: StreamOptions<string> & { type: "text" }): Publisher<string>;
  publisher(name: string, options: StreamOptions<Uint8Array> & { type: "bytes" }): Publisher<Uint8Array>;
  publisher<T = unknown>(name: string, options?: StreamOptions<T>): Publisher<T>;
  /** Return the elements of a publisher as an async iterable, with automatic demand. */
  stream(name: string, options: IterationOptions<string> & { type: "text" }): ElementStream<string>;
  stream(name: string, options: IterationOptions<Uint8Array> & { type: "bytes" }): ElementStream<Uint8Array>;
  stream<T = unknown>(name: string, options?: IterationOptions<T>): ElementStream<T>;
  /** Ask for one value: the first element of a publisher, or the answer to a request with a payload. */
  ask<T = unknown>(name: string, payload?: unknown, options?: StreamOptions<T>): Promise<T>;
  /**
   * Return the position of the first element of a log that was appended at `time` or later, for `start`: that of the oldest element if older
   * ones were dropped, and that of the next one if none is as late. `time` is a Date, or milliseconds since 1970.
   */
  positionAt(name: string, time: Date | number, options?: StreamOptions<unknown>): Promise<number>;
  /** End all streams, say goodbye, and close. */
  close(): Promise<void>;
}

/** The part of the WebSocket API that this module uses: that of browsers, of Node, or of the package `ws`. */
export type WebSocketClass = new (url: string, protocols?: string[]) => {
  binaryType: string;
  readonly readyState: number;
  readonly bufferedAmount: number;
  send(data: any): void;
  close(code?: number): void;
  addEventListener(type: "open" | "message" | "error" | "close", listener: (event: any) => void): void;
};

export interface KeepaliveOptions {
  /** Milliseconds of silence before a ping, ± 15 %: 20 s. */
  interval?: number;
  /** Milliseconds to wait for any bytes behind a ping: 20 s. */
  timeout?: number;
}

export interface ReconnectOptions {
  /** Attempts in a row without a connection that stayed: no limit. */
  attempts?: number;
  /** The bound of the first random wait in milliseconds: 100. */
  first?: number;
  /** The bound that it doubles up to: 30 s. */
  most?: number;
  /** Milliseconds that a connection must be open to count as one that stayed: 10 s. */
  healthy?: number;
}

export interface Clock {
  now(): number;
  setTimeout(callback: () => void, delay: number): any;
  clearTimeout(timer: any): void;
}

export interface ConnectOptions {
  /** True by default: answer pings, and send them to a silent server. */
  keepalive?: boolean | KeepaliveOptions;
  /** A token, or a function that returns one before each attempt. */
  bearer?: string | (() => string | Promise<string>);
  /** Allow a token over ws:// to another machine. */
  insecure?: boolean;
  /** False by default: a lost connection ends its streams. */
  reconnect?: boolean | ReconnectOptions;
  /** Closes the connection; its streams end with `signal.reason`. */
  signal?: AbortSignal;
  /** Decoders of further serializers, for all streams. */
  decoders?: Decoders;
  limits?: Partial<Limits>;
  /** Called with each new state, and the error that led to it. */
  onState?: (state: State, error: unknown) => void;
  /** The class to use if there is no global one, as in Node 20: that of the package `ws`. */
  WebSocket?: WebSocketClass;
  /** For tests: the source of time. */
  clock?: Clock;
  /** For tests: the source of random numbers from 0 to 1. */
  random?: () => number;
  /** For tests: the target of the events pagehide and pageshow. */
  page?: Pick<EventTarget, "addEventListener" | "removeEventListener"> | null;
}

/** Connect to a server of Penstock. */
export declare function connect(url: string | URL, options?: ConnectOptions): Promise<Connection>;

/** A stream as a decoder sees it. */
export interface DecodedStream {
  /** Negative before onSubscribe, 0 if each element has its length. */
  readonly elementSize: number;
  receiveElement(data: Uint8Array, from: number, to: number): void;
  receivePacked(count: number, data: Uint8Array, from: number): void;
  receivePart(number: number | bigint, part: Uint8Array, isLast: boolean): void;
}

/** What a decoder calls. */
export interface DecoderSink {
  readonly isClosing: boolean;
  readonly streams: { get(id: number | bigint): DecodedStream | undefined };
  receiveHello(extensions: (number | bigint)[]): void;
  receiveGoodbye(reason: string): void;
  receiveSubscribe(name: string, id: number | bigint, demand: number | bigint): void;
  receiveRequest(id: number | bigint, demand: number | bigint): void;
  receiveCancel(id: number | bigint): void;
  receiveOnSubscribe(id: number | bigint, elementSize: number): void;
  receiveComplete(id: number | bigint): void;
  receiveError(id: number | bigint, text: string): void;
  checkExtension(type: number, length: number, hex: string): void;
  receiveExtension(type: number, body: Uint8Array): void;
}

/** Cuts the bytes of a server into messages. For tests and tools; `connect` has its own. */
export declare class Decoder {
  constructor(sink: DecoderSink, limits?: Limits);
  readonly held: number;
  feed(chunk: Uint8Array): void;
}

/** Return the bytes of a message that a client sends. */
export declare function encode(name: "clientHello", fields: { extensions?: number[] }): Uint8Array;
export declare function encode(name: "goodbye", fields: { reason?: string }): Uint8Array;
export declare function encode(
  name: "subscribe",
  fields: { publisher: string; subscriber: number | bigint; demand: number | bigint },
): Uint8Array;
export declare function encode(name: "request", fields: { subscriber: number | bigint; demand: number | bigint }): Uint8Array;
export declare function encode(name: "cancel", fields: { subscriber: number | bigint }): Uint8Array;
export declare function encode(name: "onError", fields: { subscriber: number | bigint; error: string }): Uint8Array;
export declare function encode(name: "extension", fields: { type: number; body: Uint8Array }): Uint8Array;
