"""A gRPC server with reflection, for grpcurl: a stream and a unary call, made without generated
code.
"""

import sys
from concurrent import futures
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_reflection.v1alpha import reflection

PACKAGE = "everyday"


def main() -> None:
    """Serve at a free port, write it, and go on until standard input ends."""
    file = descriptor_pb2.FileDescriptorProto(
        name="everyday.proto", package=PACKAGE, syntax="proto3"
    )
    quote = file.message_type.add(name="Quote")
    quote.field.add(name="symbol", number=1, type=9, label=1)
    quote.field.add(name="price", number=2, type=1, label=1)
    shop = file.service.add(name="Shop")
    kind = f".{PACKAGE}.Quote"
    shop.method.add(name="Last", input_type=kind, output_type=kind)
    shop.method.add(name="Quotes", input_type=kind, output_type=kind, server_streaming=True)
    pool = descriptor_pool.Default()
    pool.Add(file)  # type: ignore[no-untyped-call]  # the library has no types
    made: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.Quote"))  # type: ignore[no-untyped-call]  # the same

    def last(request: Any, _context: Any) -> Any:
        return made(symbol=request.symbol, price=1.0)

    def quotes(request: Any, _context: Any) -> Any:
        for number in range(3):
            yield made(symbol=request.symbol, price=1.0 + number)

    coding = {
        "request_deserializer": made.FromString,
        "response_serializer": made.SerializeToString,
    }
    handlers = {
        "Last": grpc.unary_unary_rpc_method_handler(last, **coding),
        "Quotes": grpc.unary_stream_rpc_method_handler(quotes, **coding),
    }
    server = grpc.server(futures.ThreadPoolExecutor(4))
    name = f"{PACKAGE}.Shop"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))
    reflection.enable_server_reflection((name, reflection.SERVICE_NAME), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
