/** Types of the client of Penstock over HTTP. */

/** The bounds of a stream. `HTTP_LIMITS` has the defaults. */
export interface HttpLimits {
  /** Elements that an iterator requests and holds: 256. */
  readonly demand: number;
  /** Bytes of an element: 4 MiB. */
  readonly element: number;
  /** Characters of the text of an error: 4,096. */
  readonly text: number;
}

export declare const HTTP_LIMITS: HttpLimits;

export interface HttpStreamOptions<T> {
  /** How elements are decoded: "bytes" is the default. */
  type?: "bytes" | "text" | "json" | ((bytes: Uint8Array) => T);
  /** Elements that are requested and held at most: 256. */
  demand?: number;
  /** Ends the stream with `signal.reason`. */
  signal?: AbortSignal;
  /** A token, for the origin of the URL alone. */
  bearer?: string;
  /** Whether cookies are sent, as for fetch: "same-origin" is the default, "include" sends them to another origin. */
  credentials?: "omit" | "same-origin" | "include";
  /** "stream", the default, reads a streamed batch with fetch; "events" uses EventSource. */
  delivery?: "stream" | "events";
  limits?: Partial<HttpLimits>;
  /** The header of W3C Trace Context, sent when the stream is opened: the maps of demand of both sides show one stream. */
  traceparent?: string;
  /** For tests and other runtimes. */
  fetch?: (url: string, request: any) => Promise<any>;
  EventSource?: new (url: string, options?: { withCredentials?: boolean }) => any;
  clock?: { now(): number; setTimeout(callback: () => void, delay: number): any; clearTimeout(timer: any): void };
  page?: Pick<EventTarget, "addEventListener" | "removeEventListener"> | null;
  beacon?: (url: string) => unknown;
}

/** Return the elements of the publisher at `url` as an async iterable, with automatic demand. A `break` cancels. */
export declare function stream(url: string | URL, options: HttpStreamOptions<string> & { type: "text" }): AsyncIterableIterator<string>;
export declare function stream<T = unknown>(
  url: string | URL,
  options: HttpStreamOptions<T> & { type: "json" | ((bytes: Uint8Array) => T) },
): AsyncIterableIterator<T>;
export declare function stream(url: string | URL, options?: HttpStreamOptions<Uint8Array>): AsyncIterableIterator<Uint8Array>;
