"""Graph of one node that asks the model with the thread's messages, for `langgraph dev`."""

import os

from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph

model = ChatOpenAI(model="bench", api_key="sk-bench", base_url=os.environ["PROVIDER_URL"], stream_usage=True)


async def ask(state: MessagesState):
    return {"messages": [await model.ainvoke(state["messages"])]}


graph = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask").compile()
