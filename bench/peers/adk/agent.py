"""Agent for `adk api_server`, whose model asks an OpenAI-compatible provider."""

import os

from google.adk.agents import Agent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from openai import AsyncOpenAI

provider = AsyncOpenAI(api_key="sk-bench", base_url=os.environ["PROVIDER_URL"])
ROLES = {"model": "assistant", "user": "user"}


def content(text):
    return types.Content(role="model", parts=[types.Part(text=text)])


class ChatCompletions(BaseLlm):
    """Streams an answer: each token as a partial response, then the whole text."""

    async def generate_content_async(self, llm_request, stream=False):
        messages = [
            {"role": ROLES[one.role], "content": "".join(part.text or "" for part in one.parts)}
            for one in llm_request.contents
        ]
        text = ""
        async for chunk in await provider.chat.completions.create(model=self.model, messages=messages, stream=True):
            delta = chunk.choices[0].delta.content if chunk.choices else None
            if delta:
                text += delta
                yield LlmResponse(content=content(delta), partial=True)
        yield LlmResponse(content=content(text), partial=False)


root_agent = Agent(name="bench", model=ChatCompletions(model="bench"), instruction="Answer.")
