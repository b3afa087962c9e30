"""A typed client in TypeScript: tsc accepts it, and Node.js runs it against a real service."""

from pathlib import Path
from typing import Final

import pytest
import trio

from penstock.cli._contract import contract_of
from penstock.cli._contract_typescript import typescript_client
from tests._real_time import HANGS_AFTER
from tests.browser._programs import CLIENT, node_websocket, npm_package, run_node
from tests.browser._servers import serve_websocket
from tests.cli import _typed_service
from tests.cli.test_contract_python import entries_of

USE: Final = """
import { connect } from "penstock";
import { Client, type Opened, type Closed, type Page_Tree, type Side, type Tree } from "./client.js";

function check(given: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(given), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${a} and not ${b}`);
}

declare const process: { env: { PENSTOCK_URL: string } };
const connection = await connect(process.env.PENSTOCK_URL, { limits: { handshake: 300_000 } });
const client = new Client(connection);

const trees: Tree[] = [];
const query = { side: "sell", sizes: [3, 4], demand: 9, fresh: true } as const;
const asked = { ...query, sizes: [...query.sizes], at: "2026-07-01T08:00:00Z" };
for await (const tree of client.trees("a/b ?", asked, { demand: 2 })) trees.push(tree);
check(trees.map((tree) => tree.value), [3, 4]);
check([trees[0]!.side, trees[0]!.when, trees[0]!.price], ["sell", "2026-07-01T08:00:00Z", "1.50"]);
check([trees[0]!.anything, trees[0]!.kids![0]!.value], [["a/b ?", true], 9]);

const changes: (Opened | Closed)[] = [];
for await (const change of client.changes()) changes.push(change);
check(changes, [{ type: "Opened", number: 1 }, { type: "Closed", "the reason": "over" }]);
for await (const [row] of client.rows()) check(row!["max-price"] + row!.class, 2.5);
for await (const raw of client.raw()) check([...raw].length, 4);
for await (const text of client.texts()) check(text.toUpperCase(), "TEXT");
for await (const [x, y] of client.places()) check(x + y!, 3);

const page: Page_Tree = await client.tree(5, { value: 1, kids: [{ value: 2 }] });
check([page.next, page.items[0]!.kids![0]!.value], ["5", 2]);
check(await client.many([{ value: 1 }], { needed: 2 }), 3);
const side: Side = await client.choose();
check([side, await client.choose("buy")], ["sell", "buy"]);
check(await client.text("ab"), "abab");
check([...(await client.bytes(new Uint8Array([1])))], [1, 1]);
check(await client.change({ type: "Closed" }), "Closed");
check([await client.class_(), await client.classByClass("4", 6, { options: 5 })], [7, [4, 5, 6]]);
check(await client.then_(), 10);
// Without the key the service would take its default.
for (const empty of [() => client.trees("a", { sizes: [] }), () => client.trees("")]) {
  let name = "sent";
  try { empty(); } catch (error) { name = (error as Error).name; }
  check(name, "RangeError");
}
await connection.close();
console.log("all right");
"""

WRONG: Final = {
    "another type of a parameter": "client.trees(1);",
    "a value that the Enum does not have": 'client.trees("a", { side: "neither" });',
    "a parameter that does not exist": 'client.trees("a", { colour: "red" });',
    "no payload": "client.tree(1);",
    "a payload of another type": 'client.tree(1, { type: "Opened", number: 1 });',
    "no parameter that is needed": "client.many([]);",
}


def write(folder: Path, use: str) -> None:
    """Write the client, a module that uses it, and where TypeScript finds penstock."""
    text, _ = typescript_client(contract_of(entries_of(_typed_service.service())))
    (folder / "client.ts").write_text(text, encoding="ascii")
    (folder / "use.ts").write_text(use, encoding="utf-8")
    (folder / "package.json").write_text('{"type": "module"}', encoding="ascii")
    (folder / "node_modules").mkdir()
    (folder / "node_modules/penstock").symlink_to(CLIENT)


async def tsc(folder: Path) -> str:
    """Compile both modules as strictly as TypeScript can."""
    return await run_node(
        f"{npm_package('typescript')}/bin/tsc",
        *("--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes"),
        *("--target", "es2022", "--lib", "es2022,dom,dom.iterable", "--module", "nodenext"),
        str(folder / "use.ts"),
    )


async def test_it_reads_and_asks_a_running_service(tmp_path: Path) -> None:
    """Each publisher and request of the service, with the types that it describes."""
    options = node_websocket()
    write(tmp_path, USE)
    with trio.fail_after(HANGS_AFTER):
        await tsc(tmp_path)
        async with serve_websocket("bridge", _typed_service.service()) as url:
            output = await run_node(*options, str(tmp_path / "use.js"), PENSTOCK_URL=url)
    assert output.splitlines()[-1] == "all right"


async def test_a_wrong_call_is_found(tmp_path: Path) -> None:
    """Each mistake has its complaint: without one, TypeScript refuses the comment above it."""
    calls = "\n".join(f"// @ts-expect-error {why}\n{call}" for why, call in WRONG.items())
    write(
        tmp_path, f'import {{ Client }} from "./client.js";\ndeclare const client: Client;\n{calls}'
    )
    with trio.fail_after(HANGS_AFTER):
        await tsc(tmp_path)
    (tmp_path / "use.ts").write_text((tmp_path / "use.ts").read_text().replace("// @ts", "// no"))
    with pytest.raises(AssertionError, match="TS2345") as caught:
        await tsc(tmp_path)
    assert str(caught.value).count("error TS") == len(WRONG)
