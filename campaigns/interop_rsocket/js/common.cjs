// What the programs of both versions of rsocket-js need in Node.js.
const net = require("net");

// What has come of numbers that are due in order.
class Count {
  due = 0;
  lost = 0;
  repeated = 0;

  note(number) {
    if (number < this.due) { this.repeated++; return; }
    this.lost += number - this.due;
    this.due = number + 1;
  }

  toString() { return `Count(due=${this.due}, lost=${this.lost}, repeated=${this.repeated})`; }
}

const freePort = () => new Promise((done) => {
  const probe = net.createServer().listen(0, "127.0.0.1", () => {
    const found = probe.address().port;
    probe.close(() => done(found));
  });
});

module.exports = { Count, freePort };
