"""A Temporal worker whose activities are tools of agents.

    pip install temporalio cryptography
    TASK_QUEUE_KEY=<key> python worker.py
"""

import asyncio
import base64
import dataclasses
import os
from datetime import timedelta

from codec import EncryptionCodec
from temporalio import activity
from temporalio.client import Client
from temporalio.converter import DataConverter, DefaultFailureConverterWithEncodedAttributes
from temporalio.worker import Worker

TASK_QUEUE = os.environ.get("TASK_QUEUE", "statistics")


# A tool is a function. Its heartbeats are the progress that users see, and what it raises is told to the model.
@activity.defn
async def mean(arguments: dict) -> dict:
    numbers = arguments["numbers"]
    activity.heartbeat(f"adds {len(numbers)} numbers")
    return {"mean": sum(numbers) / len(numbers)}


async def main() -> None:
    key = base64.b64decode(os.environ["TASK_QUEUE_KEY"])
    converter = dataclasses.replace(
        DataConverter.default,
        payload_codec=EncryptionCodec(TASK_QUEUE, key),
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )
    address = os.environ.get("TEMPORAL_ADDRESS", "localhost:7233")
    namespace = os.environ.get("TEMPORAL_NAMESPACE", "default")
    client = await Client.connect(address, namespace=namespace, data_converter=converter)
    print(f"polls {TASK_QUEUE}", flush=True)
    # Heartbeats are sent this often at most; the default is a minute.
    often = timedelta(seconds=1)
    await Worker(client, task_queue=TASK_QUEUE, activities=[mean], max_heartbeat_throttle_interval=often).run()


asyncio.run(main())
