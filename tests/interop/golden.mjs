// Writes and reads the messages of RS.io with the npm packages @msgpack/msgpack and protobufjs. `test_golden_bytes.py` starts it.
//
// The file that it is given has {"proto": the text of rsio.proto, "messages": [{"name", "type", "values", "msgpack", "protobuf"}]}; the last two are
// bytes as hex. A value is {"int"}, {"text"}, {"bytes"} or {"ints"}, by the name of its field. Standard output has the bytes that these
// packages write for the values, and the values that they read from the bytes.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(process.env.PENSTOCK_NPM + "/");
const { decodeMulti, encode } = require("@msgpack/msgpack");
const protobuf = require("protobufjs");

const { proto, messages } = JSON.parse(readFileSync(process.argv[2], "utf-8"));
const root = protobuf.parse(proto, { keepCase: true }).root.resolveAll(); // resolved: only then fields have the defaults of proto3
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const bytesOf = (text) => new Uint8Array(Buffer.from(text, "hex"));

const number = (text) => (BigInt(text) <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(text) : BigInt(text));
function packed(value) {
  if ("int" in value) return encode(number(value.int), { useBigInt64: true });
  if ("ints" in value) return encode(value.ints.map(number), { useBigInt64: true });
  return encode("text" in value ? value.text : bytesOf(value.bytes));
}

function unpacked(object) {
  if (object instanceof Uint8Array) return { bytes: hex(object) };
  if (Array.isArray(object)) return { ints: object.map(String) };
  return typeof object === "string" ? { text: object } : { int: String(object) };
}

// Implicit presence: a field that is 0 or empty is not written.
function written(kind, values) {
  const object = {};
  for (const [name, value] of Object.entries(values)) {
    if ("int" in value && value.int !== "0") object[name] = value.int;
    if ("ints" in value && value.ints.length) object[name] = value.ints;
    if (value.text) object[name] = value.text;
    if (value.bytes) object[name] = Buffer.from(value.bytes, "hex");
  }
  return kind.encodeDelimited(kind.fromObject(object)).finish();
}

function read(kind, body) {
  const object = kind.toObject(kind.decodeDelimited(body), { longs: String, defaults: true, arrays: true, bytes: Array });
  const values = {};
  for (const field of kind.fieldsArray) {
    const value = object[field.name];
    if (field.repeated) values[field.name] = { ints: value.map(String) };
    else if (field.type === "bytes") values[field.name] = { bytes: hex(value) };
    else values[field.name] = field.type === "string" ? { text: value } : { int: String(value) };
  }
  return values;
}

const answers = messages.map((message) => {
  const kind = root.lookupType(`penstock.rsio.v0.${message.name}`);
  const objects = Object.values(message.values);
  const [type, ...fields] = [...decodeMulti(bytesOf(message.msgpack), { useBigInt64: true })];
  return {
    msgpack: hex(Buffer.concat([Uint8Array.of(message.type), ...objects.map(packed)])),
    protobuf: hex(Buffer.concat([Uint8Array.of(message.type), written(kind, message.values)])),
    read_msgpack: [Number(type), ...fields.map(unpacked)],
    read_protobuf: read(kind, bytesOf(message.protobuf).subarray(1)),
  };
});
process.stdout.write(JSON.stringify(answers));
