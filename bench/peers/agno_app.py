"""AgentOS of Agno: one agent, its sessions and runs in Postgres, the conversation sent with each turn."""

import os

import uvicorn
from agno.agent import Agent
from agno.db.postgres import AsyncPostgresDb
from agno.models.openai.like import OpenAILike
from agno.os import AgentOS

agent = Agent(
    id="bench",
    model=OpenAILike(id="bench", api_key="sk-bench", base_url=os.environ["PROVIDER_URL"]),
    db=AsyncPostgresDb(db_url=os.environ["DATABASE_URL"].replace("postgresql:", "postgresql+psycopg:")),
    add_history_to_context=True,
    telemetry=False,
)
app = AgentOS(id="bench", agents=[agent], telemetry=False).get_app()

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning")
