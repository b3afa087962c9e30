// Reads a stream with the fetch of Node.js: node fetch.mjs http://127.0.0.1:7002/p/numbers/5
const publisher = process.argv[2];
const created = await fetch(`${publisher}?request=3`, {method: "PUT"});
const stream = new URL(created.headers.get("Location"), publisher).href;
let position = 0;

async function batch(query) {
    const headers = {"X-Rsio-Delivery": "stream", "X-Rsio-Position": String(position)};
    const response = await fetch(`${stream}${query}`, {method: "PUT", headers});
    let rest = new Uint8Array();
    for await (const part of response.body ?? []) {
        rest = new Uint8Array([...rest, ...part]);
        for (let size; rest.length >= 4 && rest.length >= 4 + (size = new DataView(rest.buffer).getUint32(0)); rest = rest.slice(4 + size)) {
            console.log(new TextDecoder().decode(rest.slice(4, 4 + size)));
            position += 1;
        }
    }
    return response.status;
}

console.log(await batch(""), "at", position);
console.log(await batch("?request=9"), "at", position);
console.log(await batch(""), "at", position);
const other = await fetch(`${publisher}?request=1`, {method: "PUT"});
const beacon = new URL(other.headers.get("Location"), publisher).href;
console.log((await fetch(`${beacon}/cancel`, {method: "POST", body: ""})).status);
const gone = await fetch(beacon, {method: "PUT"});
console.log(gone.status, gone.headers.get("X-Rsio-Error"), (await gone.text()).trim());
