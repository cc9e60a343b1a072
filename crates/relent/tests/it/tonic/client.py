"""Calls the server at argv[1] by a service config that retries, and prints what came of each call."""

import json
import sys

import grpc

CONFIG = {
    "methodConfig": [{
        "name": [{"service": "shop.Prices"}],
        "retryPolicy": {
            "maxAttempts": 4,
            "initialBackoff": "0.01s",
            "maxBackoff": "0.02s",
            "backoffMultiplier": 2,
            "retryableStatusCodes": ["UNAVAILABLE"],
        },
    }],
}

with grpc.insecure_channel(sys.argv[1], options=[("grpc.service_config", json.dumps(CONFIG))]) as channel:
    get = channel.unary_unary("/shop.Prices/Get")
    for question in ["flaky", "stop", "wait", "deadline"]:
        try:
            print(question, get(question.encode(), timeout=60, wait_for_ready=True).decode())
        except grpc.RpcError as error:
            print(question, error.code().name, error.details())
