// A page would have the same lines. Prints each price as a line of JSON.
import { connect, PublisherFailed } from "../../clients/javascript/penstock.js";

const connection = await connect(process.argv[2], { reconnect: { first: 100, most: 500 } });
for (;;) {
  try {
    for await (const price of connection.stream("prices", { type: "json" })) {
      console.log(JSON.stringify(price));
    }
  } catch (error) {
    // The text says what was missed. A new stream goes on after it.
    if (!(error instanceof PublisherFailed)) throw error;
    console.error(error.message);
  }
}
