"""The client: it requests some numbers, three times, and leaves."""

import trio

import penstock

URL = "tcp://127.0.0.1:7000/numbers/10"


async def main() -> None:
    async with penstock.subscribe(URL, serializer="json", demand=0) as stream:
        for wanted in (2, 1, 3):
            print("request", wanted)
            stream.request(wanted)
            for _ in range(wanted):
                print("  got", await anext(stream))


if __name__ == "__main__":
    trio.run(main)
