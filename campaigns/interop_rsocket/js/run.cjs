// Runs the checks of either version of rsocket-js.
const LATE = 10000;

const same = (got, make, count) =>
  JSON.stringify(got) === JSON.stringify(Array.from({ length: count }, (_, n) => make(n)));

// Each row has its time. A row that fails does not hide the others.
async function run(rows, row) {
  for (const [name, check] of Object.entries(rows)) {
    let timer;
    const late = new Promise((_, fail) => {
      timer = setTimeout(() => fail(new Error(`no answer in ${LATE / 1000} s`)), LATE);
    });
    try {
      row(name, (await Promise.race([check(), late])) ? "ok" : "wrong answer");
    } catch (failed) {
      row(name, `${failed}`.replace(/\n/g, " "));
    }
    clearTimeout(timer);
  }
}

module.exports = { run, same };
