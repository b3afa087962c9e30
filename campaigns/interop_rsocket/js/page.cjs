// What a page in a browser has of rsocket-js 0.0.27: `ask(url)` returns the rows of a server over
// WebSocket, with their results.
const { BufferEncoders } = require("rsocket-core");
const WsClient = require("rsocket-websocket-client").default;
const { ask } = require("./rows.cjs");

globalThis.ask = async (url) => {
  const found = {};
  await ask(() => new WsClient({ url }, BufferEncoders), (name, result) => { found[name] = result; });
  return found;
};
