// Reads a document from standard input with the official parser of AsyncAPI, and tells what is wrong.
const { Parser } = require("@asyncapi/parser");

let text = "";
process.stdin.on("data", (part) => { text += part; });
process.stdin.on("end", async () => {
  const { document, diagnostics } = await new Parser().parse(text);
  const errors = diagnostics.filter((each) => each.severity === 0).map((each) => each.message);
  if (document === undefined || errors.length > 0) {
    console.log(errors.join("; ") || "no document");
    process.exit(1);
  }
  console.log(document.operations().all().length);
});
