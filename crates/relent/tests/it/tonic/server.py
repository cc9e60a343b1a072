"""Answers by what is asked and by how many attempts went before; prints its port, and ends with its input."""

import sys
from concurrent import futures

import grpc


def get(request, context):
    metadata = dict(context.invocation_metadata())
    before = int(metadata.get("grpc-previous-rpc-attempts", "0"))
    question = request.decode()
    if question == "stop":
        context.set_trailing_metadata((("grpc-retry-pushback-ms", "-1"),))
        context.abort(grpc.StatusCode.UNAVAILABLE, f"not again, after {before}")
    if question == "wait" and before == 0:
        context.set_trailing_metadata((("grpc-retry-pushback-ms", "20"),))
        context.abort(grpc.StatusCode.UNAVAILABLE, "in a moment")
    if question == "head" and before == 0:
        context.send_initial_metadata((("zone", "b"),))
        context.abort(grpc.StatusCode.UNAVAILABLE, "after the head")
    if question == "flaky" and before < 2:
        context.abort(grpc.StatusCode.UNAVAILABLE, f"attempt {before}")
    timed = "with" if context.time_remaining() is not None else "without"
    return f"{timed} a deadline, after {before}".encode()


class Prices(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(get) if details.method == "/shop.Prices/Get" else None


server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
server.add_generic_rpc_handlers((Prices(),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
sys.stdin.read()
server.stop(None).wait()
