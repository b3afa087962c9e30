// What a page in a browser has of rsocket-js 1.0.0-alpha: the same as page.cjs.
const { WebsocketClientTransport } = require("rsocket-websocket-client-alpha");
const { ask } = require("./alpha_rows.cjs");

globalThis.ask = async (url) => {
  const found = {};
  await ask(() => new WebsocketClientTransport({ url }), (name, result) => { found[name] = result; });
  return found;
};
