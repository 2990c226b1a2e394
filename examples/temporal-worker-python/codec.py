"""Payload codec of a task queue: AES-256-GCM under the key that the queue was registered with."""

import os
from collections.abc import Sequence

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec


class EncryptionCodec(PayloadCodec):
    def __init__(self, task_queue: str, key: bytes) -> None:
        self.key_id = task_queue.encode()
        self.cipher = AESGCM(key)

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._encrypt(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._decrypt(payload) for payload in payloads]

    def _encrypt(self, payload: Payload) -> Payload:
        nonce = os.urandom(12)
        data = nonce + self.cipher.encrypt(nonce, payload.SerializeToString(), None)
        return Payload(metadata={"encoding": b"binary/encrypted", "encryption-key-id": self.key_id}, data=data)

    def _decrypt(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != b"binary/encrypted":
            return payload
        return Payload.FromString(self.cipher.decrypt(payload.data[:12], payload.data[12:], None))
