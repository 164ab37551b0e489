FROM python:3.11-slim-bookworm

RUN pip install --no-cache-dir uv==0.13.9 && useradd --create-home --uid 10001 agentvisor
WORKDIR /app
ENV UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1 PATH=/app/.venv/bin:$PATH

# Dependencies change less often than code: they are a layer of their own.
COPY pyproject.toml uv.lock README.md LICENSE ./
RUN uv sync --locked --no-default-groups --extra postgres --no-install-project

COPY agent_adapter agent_adapter
COPY agentvisor agentvisor
COPY workflows workflows
COPY activities activities
COPY client client
COPY worker.py ./
RUN uv sync --locked --no-default-groups --extra postgres

COPY examples /projects

USER agentvisor
ENTRYPOINT ["python", "worker.py"]
CMD ["--project", "/projects/shop_helper"]
