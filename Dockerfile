# One image, three roles: `node main.ts` (API and worker together), `node api/main.ts`, `node worker/main.ts`.
# Node runs the TypeScript sources directly, so there is no compile step.

FROM node:24-slim AS base
WORKDIR /app
# Temporal's native client verifies certificates with the system's own list, which the slim image leaves out.
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/*

# All packages, to build with.
FROM base AS packages
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund

# The packages to run with, their bill of materials, their licences and their compiled code, as the user of the image reads it.
FROM packages AS dependencies
COPY scripts/prune.ts scripts/compile.ts scripts/licenses.ts scripts/
RUN node --disable-warning=ExperimentalWarning scripts/prune.ts \
  && node --disable-warning=ExperimentalWarning scripts/licenses.ts > licenses.txt \
  && npm pkg delete devDependencies \
  && npm sbom --sbom-format cyclonedx > sbom.json \
  && node scripts/compile.ts /app/dist/compiled 1000

FROM base AS build
COPY . .
# Prisma would download its native schema engine, which generating does not use: any file that exists satisfies it.
# The console is built on the typed client, as is the element <agent-chat>, which other pages load. The bundle of workflows is made here, so that a worker needs no bundler at run time and every worker of a release runs the
# same code.
RUN --mount=type=bind,from=packages,source=/app/node_modules,target=/app/node_modules,rw \
  PRISMA_SCHEMA_ENGINE_BINARY=/bin/true node node_modules/prisma/build/index.js generate --no-hints \
  && node --disable-warning=ExperimentalWarning scripts/client.ts \
  && node --disable-warning=ExperimentalWarning scripts/console.ts \
  && node --input-type=module --eval "await (await import('/app/worker/bundle.ts')).bundleWorkflows()"
# Leaves what differs from release to release: the database client and the packages' compiled code are layers of their own.
RUN --mount=type=bind,from=dependencies,source=/app,target=/dependencies \
  --mount=type=bind,from=dependencies,source=/app/node_modules,target=/app/node_modules \
  node --disable-warning=ExperimentalWarning scripts/compile.ts /app/dist/compiled 1000 main.ts \
  && (cd /dependencies/dist/compiled && find . -type f) | (cd dist/compiled && xargs rm -f) \
  && cp /dependencies/package.json . \
  && mv prisma/generated /generated \
  && rm -rf scripts dev examples client/src embed/src package-lock.json \
  && find console -mindepth 1 -maxdepth 1 ! -name dist -exec rm -rf {} +

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
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=dependencies /app/dist ./dist
COPY --from=dependencies /app/sbom.json /app/licenses.txt ./
COPY --from=build /generated ./prisma/generated
COPY --from=build /app ./
ARG VERSION=1.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="agent-session-service" \
  org.opencontainers.image.description="Hosts configurable AI agents and runs them in durable sessions" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${REVISION}"
# Owned by root and run as another user, by number, as Kubernetes asks: the process cannot change its own code.
USER 1000
EXPOSE 9300
STOPSIGNAL SIGTERM
# For the roles that serve the API. A worker alone serves /health on METRICS_PORT.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 CMD ["node", "deploy/check-api.ts"]
CMD ["node", "main.ts"]
