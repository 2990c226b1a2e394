"""A chat in the terminal, with nothing but Python's standard library.

    python3 examples/chat.py                 # a session without an agent
    python3 examples/chat.py agent_0193…     # with one; its tool ask_user asks here

API_URL and API_TOKEN name another service, and who calls. docs/building-a-chat.md explains the code.
"""

import json, os, sys, time, uuid
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request, urlopen

API = os.environ.get("API_URL", "http://localhost:9300") + "/v1"
HEADERS = {"Content-Type": "application/json"}
if "API_TOKEN" in os.environ:  # an access token or an API key, where users sign in
    HEADERS["Authorization"] = "Bearer " + os.environ["API_TOKEN"]


def send(path, body=None, **headers):
    data = None if body is None else json.dumps(body).encode()
    return urlopen(Request(API + path, data, {**HEADERS, **headers}), timeout=45)


def submit(session, results, again):
    try:
        send(f"/sessions/{session}/tool-results", {"tool_results": results})
    except HTTPError as error:
        if not (again and error.code in (400, 409)):  # They have been taken already.
            raise


def pause(error):
    asked = error.headers.get("Retry-After", "")  # or a date
    time.sleep(int(asked) if asked.isdigit() else 1)


def events(stream):
    frames = (json.loads(line[6:]) for line in stream if line.startswith(b"data: ") and line.endswith(b"\n"))
    return (frame for frame in frames if "type" in frame)


def ask(session, text, tools, show):
    """Sends a message and returns the answer. `show` gets the text so far, `tools` has functions by name."""
    message = {"message": {"content": [{"type": "text", "text": text}]}}
    once = {"Accept": "text/event-stream", "Idempotency-Key": str(uuid.uuid4())}
    turn = last = answer = None
    done = {}
    while True:
        try:
            resume = f"/sessions/{session}/sse?turn_id={turn}&since_id={last}"
            stream = send(resume) if turn else send(f"/sessions/{session}/messages", message, **once)
            for event in events(stream):
                type, data = event["type"], event["data"]
                turn = event["context"].get("turn_id", turn)
                if type == "output.message.started":  # of a retried answer, too: it starts over
                    show("")
                elif type == "output.message.delta":
                    show(data["accumulated"])
                elif type == "output.message.completed":
                    answer = "".join(part.get("text", "") for part in data["message"]["content"])
                elif type == "tool.call_requested":
                    again = bool(done)
                    for call in data["tool_calls"]:
                        if call["id"] not in done:
                            done[call["id"]] = tools[call["name"]](**call["arguments"])
                    submit(session, [{"tool_call_id": id, "result": result} for id, result in done.items()], again)
                    done.clear()
                elif type == "turn.completed":
                    return answer
                elif type in ("turn.failed", "turn.cancelled"):
                    raise RuntimeError(data.get("error") or data.get("reason"))
                last = event["id"]
            time.sleep(0.1)  # The service closes long streams, to be opened again.
        except HTTPError as error:
            if error.code not in (429, 500, 502, 503, 504):
                raise
            pause(error)
        except (OSError, HTTPException):
            time.sleep(0.5)


def show_line(text):
    print("\r\033[K" + text.replace("\n", " ")[-100:], end="", flush=True)


def main(agent=None):
    session = json.load(send("/sessions", {"agent_id": agent}))["id"]
    print(f"Session {session}. An empty line ends the chat.")
    while text := input("> "):
        answer = ask(session, text, {"ask_user": lambda question: input(f"\r\033[K{question} ")}, show_line)
        print("\r\033[K" + (answer or ""))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except EOFError:
        pass
