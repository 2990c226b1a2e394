"""Drives agents with the Python package `openai`. Prints what came of each scenario as JSON.

python drive_openai.py <JSON: {"key": "...", "stages": {"<scenario>": {"base_url": "...", "model": "..."}}}>
"""

import json
import sys
import uuid

import openai

given = json.loads(sys.argv[1])
TOOL = {
    "type": "function",
    "function": {"name": "look_around", "parameters": {"type": "object", "properties": {}}},
}


def client_of(stage):
    headers = {"X-Session-Id": str(uuid.uuid4())}
    return openai.OpenAI(base_url=stage["base_url"], api_key=given["key"], default_headers=headers)


def user(content):
    return {"role": "user", "content": content}


def stream(client, model, messages):
    text, thinking, usage = "", "", None
    chunks = client.chat.completions.create(
        model=model, messages=messages, stream=True, stream_options={"include_usage": True}
    )
    for chunk in chunks:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            thinking += getattr(choice.delta, "reasoning_content", None) or ""
    return {"text": text, "thinking": thinking.strip(), "has_usage": usage.total_tokens > 0}


def conversation(client, model):
    first = stream(client, model, [user("Hello")])
    history = [user("Hello"), {"role": "assistant", "content": first["text"]}, user("Bye")]
    second = client.chat.completions.create(model=model, messages=history)
    is_listed = any(one.id == model for one in client.models.list())
    return {"first": first, "second": second.choices[0].message.content, "is_listed": is_listed}


def tools(client, model):
    messages = [user("How is it?")]
    asked = client.chat.completions.create(model=model, messages=messages, tools=[TOOL])
    message = asked.choices[0].message
    outputs = [
        {"role": "tool", "tool_call_id": call.id, "content": f"room {index}"}
        for index, call in enumerate(message.tool_calls)
    ]
    messages += [message, *outputs]
    answer = client.chat.completions.create(model=model, messages=messages, tools=[TOOL])
    return {
        "asked": [call.function.name for call in message.tool_calls],
        "reason": asked.choices[0].finish_reason,
        "answer": answer.choices[0].message.content,
    }


def failure(client, model):
    errors = []
    for wanted in [model, "nope"]:
        for is_stream in [False, True]:
            try:
                answer = client.chat.completions.create(
                    model=wanted, messages=[user(f"Fail {is_stream}")], stream=is_stream
                )
                list(answer)
            except openai.APIError as error:
                errors.append([type(error).__name__, error.message])
    return errors


def lost(client, model):
    return stream(client, model, [user("Say it")])["text"]


for name, run in {"conversation": conversation, "tools": tools, "failure": failure, "lost": lost}.items():
    stage = given["stages"][name]
    print(json.dumps({name: run(client_of(stage), stage["model"])}), flush=True)
