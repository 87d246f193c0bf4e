# redlockd on the libraries of Debian 13; builds with BuildKit and without.
ARG BASE=debian:trixie-slim
ARG VERSION=0.1.0

FROM ${BASE} AS build
WORKDIR /src
COPY scripts/deps.sh scripts/
RUN scripts/deps.sh build
COPY . .
ARG VERSION
RUN [ "$(cat VERSION)" = "$VERSION" ] || { \
      echo "ARG VERSION is $VERSION, the file VERSION $(cat VERSION)" >&2; \
      exit 1; \
    } \
 && make -j"$(nproc)" install-bin DESTDIR=/out PREFIX=/usr \
      CFLAGS="-fstack-protector-strong -D_FORTIFY_SOURCE=3" \
      LDFLAGS="-s -Wl,--as-needed,-z,relro,-z,now"

FROM ${BASE}
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
      --no-install-recommends \
      libcurl4t64 libgnutls30t64 libhiredis1.1.0 libjansson4 \
      libmicrohttpd12t64 libsystemd0 libuv1t64 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old \
      /var/log/apt /var/log/dpkg.log /var/cache/ldconfig/aux-cache
COPY --from=build /out/usr/bin/ /usr/bin/
COPY LICENSE /usr/share/doc/redlockd/copyright

ARG VERSION
LABEL org.opencontainers.image.title="redlockd" \
      org.opencontainers.image.description="Distributed locks over HTTP, on Redis masters" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.url="https://github.com/redlockd/redlockd" \
      org.opencontainers.image.source="https://github.com/redlockd/redlockd" \
      org.opencontainers.image.authors="redlockd authors"

# Everything is configured by REDLOCKD_… variables, so that the probe below
# sees what the server sees. It starts with REDLOCKD_AUTH_FILE, or with
# REDLOCKD_ALLOW_ANONYMOUS=yes: then publish the port on loopback or a private
# network only.
ENV REDLOCKD_LISTEN=0.0.0.0:8080
EXPOSE 8080
# a number, so that an orchestrator can check that it is not root
USER 65532:65532
# asks /readyz: without a quorum of nodes the container is unhealthy
HEALTHCHECK --interval=5s --timeout=6s --start-period=10s --retries=2 \
    CMD ["/usr/bin/redlockctl", "ready"]
# no shell between: SIGTERM reaches redlockd, which drains for 12 s, and up to
# 8 s more; `docker stop` waits 10 s unless the container has a --stop-timeout
ENTRYPOINT ["/usr/bin/redlockd"]
