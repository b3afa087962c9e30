/** Calls that `tsc --strict` must accept, and, behind `@ts-expect-error`, calls that it must refuse. It is checked and never run. */

import { WebSocket as NodeWebSocket } from "ws";
import { type Connection, ConnectionLost, LIMITS, PenstockError, type Subscription, connect } from "../penstock.js";
import { HTTP_LIMITS, stream } from "../http.js";

interface Tick {
  symbol: string;
  price: number;
}

export async function read(): Promise<number> {
  const controller = new AbortController();
  const connection: Connection = await connect("wss://example.com/", {
    bearer: async () => "token",
    keepalive: { interval: 10_000 },
    limits: { element: 65_536 },
    onState: (state, error) => console.log(state === "open", error),
    reconnect: { attempts: 3 },
    signal: controller.signal,
    WebSocket: NodeWebSocket,
  });
  let sum = 0;
  for await (const tick of connection.stream<Tick>("ticks/EURUSD", { type: "json", demand: 16 })) sum += tick.price;
  for await (const text of connection.stream("names", { type: "text" })) sum += text.length;
  for await (const bytes of connection.stream("blocks", { type: "bytes" })) sum += bytes.byteLength;
  const log = connection.stream("log", { type: "text", start: "earliest", stop: 9n });
  for await (const text of log) sum += text.length + Number(log.position ?? 0) + log.restarts;
  for await (const size of connection.stream("sizes", { type: (bytes) => bytes.length })) sum += size;
  // @ts-expect-error an element is unknown if the program does not say what it is
  for await (const element of connection.stream("ticks")) sum += element;
  const answer: Tick = await connection.ask<Tick>("last", { symbol: "EURUSD" }, { type: "json" });
  await connection.close();
  return sum + answer.price + LIMITS.element;
}

export function subscribe(connection: Connection): void {
  let subscription: Subscription;
  connection.publisher<Tick>("ticks/EURUSD").subscribe({
    onSubscribe(given) {
      subscription = given;
      subscription.request(1);
    },
    onNext: (tick) => subscription.request(tick.price > 0 ? 1 : Infinity),
    onError: (error) => console.log(error instanceof ConnectionLost && error.who, error instanceof PenstockError),
    onComplete: () => {},
  });
  // @ts-expect-error a subscriber has four methods
  connection.publisher("ticks").subscribe({ onNext: () => {} });
  // @ts-expect-error no such option
  connection.stream("ticks", { batch: 1 });
  // @ts-expect-error a bound is a number
  void connect("wss://example.com/", { limits: { element: "1" } });
  void connect(new URL("wss://example.com/"), { WebSocket: globalThis.WebSocket });
}

export async function readOverHttp(): Promise<number> {
  let sum = HTTP_LIMITS.demand;
  const url = "https://example.com/p/ticks/EURUSD";
  for await (const tick of stream<Tick>(url, { type: "json", credentials: "include", delivery: "events" })) sum += tick.price;
  for await (const text of stream(url, { type: "text", bearer: "token" })) sum += text.length;
  for await (const bytes of stream(new URL(url), { demand: 16, limits: { element: 65_536 } })) sum += bytes.byteLength;
  // @ts-expect-error no such way of delivery
  stream(url, { delivery: "push" });
  return sum;
}
