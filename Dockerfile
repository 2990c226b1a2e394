# One image, three roles: `node main.ts` (API and worker together), `node api/main.ts`, `node worker/main.ts`.
# Node runs the TypeScript sources directly, so there is no compile step.

FROM node:24-slim AS base
WORKDIR /app
# Temporal's native client verifies certificates with the system's own list, which the slim image leaves out.
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/*

FROM base AS build
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
# Prisma would download its native schema engine, which generating does not use: any file that exists satisfies it.
RUN PRISMA_SCHEMA_ENGINE_BINARY=/bin/true node_modules/.bin/prisma generate --no-hints
# The console in the browser uses the typed client.
RUN node --disable-warning=ExperimentalWarning scripts/client.ts
# Bundled here, the worker needs no bundler at run time and every worker of a release runs the same workflow code.
RUN node --input-type=module --eval "await (await import('/app/worker/bundle.ts')).bundleWorkflows()"
# The service does not use just-bash's Python and command line.
RUN npm prune --omit=dev --no-audit --no-fund \
  && rm -rf scripts dev \
    node_modules/just-bash/vendor node_modules/just-bash/dist/bin
# Keeps the compiled code of all modules, which saves a third of a start.
RUN NODE_COMPILE_CACHE=/app/dist/compiled node --input-type=module --eval "await import('/app/main.ts')"

FROM base AS run
# Makes glibc return large blocks to the system when they are freed, instead of keeping the memory of the largest bodies.
# Young objects get 24 MB: with more, an idle process keeps 100 MB that it used once.
ENV NODE_ENV=production \
  MALLOC_MMAP_THRESHOLD_=1048576 \
  MALLOC_TRIM_THRESHOLD_=1048576 \
  NODE_OPTIONS="--disable-warning=ExperimentalWarning --max-semi-space-size=8" \
  NODE_COMPILE_CACHE=/app/dist/compiled \
  HOST=0.0.0.0 \
  PORT=9300
COPY --from=build /app ./
# Owned by root and run as another user: the process cannot change its own code.
USER node
EXPOSE 9300
STOPSIGNAL SIGTERM
# For the roles that serve HTTP. A container that is a worker alone needs deploy/check-worker.ts.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 CMD ["node", "deploy/check-api.ts"]
CMD ["node", "main.ts"]
