# The image: what `docker build -t flamegate .` makes. No shell is needed in it, its root may be read-only, and all that it writes is
# in /data. test/integration/test_shipping.py holds this file to the sources and to the libraries of the binary.
FROM debian:bookworm AS build
RUN apt-get update -q && apt-get install -y -q --no-install-recommends \
    gcc libc6-dev make \
    libuv1-dev libisal-dev libdeflate-dev libzstd-dev libjansson-dev libyaml-dev libsodium-dev libpcre2-dev libsqlite3-dev libpq-dev libhiredis-dev libssl-dev libxxhash-dev node-llhttp
WORKDIR /src
COPY Makefile ./
COPY auth auth
COPY backends backends
COPY codecs codecs
COPY conf conf
COPY gateway gateway
RUN make -j"$(nproc)" all && strip build/flamegate && install -d -m 700 build/data

FROM debian:bookworm-slim
RUN apt-get update -q && apt-get install -y -q --no-install-recommends \
    libdeflate0 libhiredis0.14 libisal2 libpcre2-8-0 libpq5 libsodium23 libsqlite3-0 libssl3 libuv1 libyaml-0-2 libzstd1 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/log/apt /var/log/dpkg.log
COPY --from=build /src/build/flamegate /usr/local/bin/flamegate
COPY --from=build --chown=65532:65532 /src/build/data /data
COPY conf/image.yaml /etc/flamegate/flamegate.yaml
ENV FLAMEGATE_CONFIG=/etc/flamegate/flamegate.yaml
# Also where SQLite puts what it must spill, since no other folder can be written.
WORKDIR /data
VOLUME /data
USER 65532:65532
EXPOSE 4040 4041
# Stopping takes drain_delay and what is under way: give it 60 s (`docker stop -t 60`).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/usr/local/bin/flamegate", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/flamegate"]
CMD ["serve"]
