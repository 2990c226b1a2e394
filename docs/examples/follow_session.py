"""Follows the events of a session with nothing but Python's standard library.

    python3 follow_session.py http://localhost:9300 session_0193...

Prints the id of each event, once and in order. Whatever happens to the connection, the server or the network, it
reconnects and continues after the last event received.
"""

import http.client
import json
import sys
import time
from urllib.parse import urlsplit

# The server sends something at least every 30 seconds.
SILENCE_SECONDS = 45


def read_frames(answer):
    """Yields (event, id, data, retry) for each frame; lines that start with a colon are comments."""
    fields = {}
    for raw in answer:
        line = raw.decode("utf-8").rstrip("\r\n")
        if line == "":
            if fields:
                yield fields.get("event"), fields.get("id"), fields.get("data"), fields.get("retry")
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            # Data may span several lines.
            fields[name] = fields["data"] + "\n" + value if name == "data" and "data" in fields else value


def follow(server, session_id):
    """Yields each event as a dict, without end."""
    address = urlsplit(server)
    connect = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    path = f"{address.path.rstrip('/')}/v1/sessions/{session_id}/sse"
    last_id, retry_ms = None, 1000
    while True:
        connection = connect(address.hostname, address.port, timeout=SILENCE_SECONDS)
        try:
            headers = {"Accept": "text/event-stream"}
            if last_id is not None:
                headers["Last-Event-ID"] = last_id
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            if answer.status != 200:
                told = answer.read().decode()
                if answer.status in (400, 401, 403, 404):
                    raise SystemExit(f"{answer.status}: {told}")
                retry_ms = 1000 * int(answer.headers.get("Retry-After", "1"))
            else:
                for event, event_id, data, retry in read_frames(answer):
                    if retry is not None:
                        retry_ms = int(retry)
                    if event == "disconnecting":
                        break
                    if event_id is not None:
                        yield json.loads(data)
                        last_id = event_id
        except (OSError, http.client.HTTPException) as error:
            print(f"connection lost ({error!r})", file=sys.stderr, flush=True)
        finally:
            connection.close()
        time.sleep(retry_ms / 1000)


if __name__ == "__main__":
    for event in follow(sys.argv[1], sys.argv[2]):
        print(event["id"], flush=True)
