# vertimrf in an image: not root, with kernels compiled while it is built. How to use it: docs/containers.md.
FROM debian:trixie-slim AS base
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 ca-certificates \
    && rm -rf /var/lib/apt/lists/*

FROM base AS build
RUN apt-get update && apt-get install --yes --no-install-recommends python3-venv
RUN python3 -m venv /opt/vertimrf
COPY pyproject.toml README.md LICENSE /src/
COPY vertimrf /src/vertimrf
RUN /opt/vertimrf/bin/pip install '/src[report]'
# Machine code is for the processor that is named here: "generic" runs on all of the architecture (docs/containers.md).
ARG CPU=generic
ENV NUMBA_CPU_NAME=$CPU NUMBA_CPU_FEATURES= NUMBA_CACHE_DIR=/opt/kernels
RUN /opt/vertimrf/bin/vertimrf warmup

FROM base
RUN useradd --uid 10001 --no-create-home --home-dir /work vertimrf && install --directory --owner vertimrf /work
COPY --from=build /opt /opt
ARG CPU=generic
ENV PATH=/opt/vertimrf/bin:/usr/local/bin:/usr/bin:/bin
ENV NUMBA_CPU_NAME=$CPU NUMBA_CPU_FEATURES= NUMBA_CACHE_DIR=/opt/kernels
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# Records of releases: in the folder that is mounted.
ENV VERTIMRF_STATE=/work/state
USER 10001:10001
WORKDIR /work
ENTRYPOINT ["vertimrf"]
