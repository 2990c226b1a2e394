"""Drives a turn with a client that openapi-python-client has generated. Prints what came of it as JSON.

python drive_generated_client.py <folder of the generated package> <address> <organization> <id of llmsim-script>
"""

import json
import sys
import time

folder, address, organization, model_id = sys.argv[1:]
sys.path.insert(0, folder)

from generated import Client  # noqa: E402
from generated.api.agents import create_agent  # noqa: E402
from generated.api.events import list_events  # noqa: E402
from generated.api.messages import create_message, list_messages  # noqa: E402
from generated.api.sessions import create_session  # noqa: E402
from generated.api.turns import submit_tool_results  # noqa: E402
from generated import models as m  # noqa: E402

SCRIPT = [
    {"tool_calls": [{"name": "ask_user", "arguments": {"question": "Which colour?"}}]},
    {"text": "Blue it is."},
]
client = Client(
    base_url=address, headers={"X-Org-Id": organization}, raise_on_unexpected_status=True
)


def event_of(session_id, wanted):
    """Returns the first event of a class, once it is there."""
    for _ in range(600):
        for event in list_events.sync(session_id, client=client).data:
            if isinstance(event, wanted):
                return event
        time.sleep(0.05)
    raise TimeoutError(wanted.__name__)


tool = m.ClientSideTool(
    type_="client_side",
    name="ask_user",
    description="Asks the user.",
    parameters=m.ClientSideToolParameters.from_dict({"type": "object"}),
)
agent = create_agent.sync(
    client=client,
    body=m.CreateAgentRequest(
        name="Painter",
        system_prompt=f"Play.\n```llmsim\n{json.dumps(SCRIPT)}\n```",
        default_model_id=model_id,
        tools=[tool],
    ),
)
session = create_session.sync(client=client, body=m.CreateSessionRequest(agent_id=agent.id))
text = m.TextContentPart(type_="text", text="Paint the door.")
create_message.sync(
    session.id,
    client=client,
    body=m.CreateMessageRequest(message=m.CreateMessageRequestMessage(content=[text])),
)
[call] = event_of(session.id, m.ToolCallRequestedEvent).data.tool_calls
result = m.ClientToolResult(tool_call_id=call.id, result={"colour": "blue"})
submit_tool_results.sync(
    session.id, client=client, body=m.SubmitToolResultsRequest(tool_results=[result])
)
completed = event_of(session.id, m.TurnCompletedEvent)
answer = list_messages.sync(session.id, client=client).data[-1]
print(
    json.dumps(
        {
            "asked": call.arguments["question"],
            "iterations": completed.data.iterations,
            "answer": [part.text for part in answer.content if isinstance(part, m.TextContentPart)],
        }
    )
)
