#!/bin/bash -eu
# Run by OSS-Fuzz in its image: it installs penstock with its plugins, and packs each target with
# its corpus.
cd "$SRC/penstock"
pip3 install . ./tck ./plugins/penstock-{http,websocket,msgpack,protobuf,arrow,rsocket,nats,redis,metrics}
for target in fuzz/fuzz_*.py; do
  compile_python_fuzzer "$target" --add-binary="fuzz/corpus:corpus"
  name=$(basename "$target" .py)
  corpus=$(mktemp -d)
  python3 "$target" --seeds "$corpus"
  (cd "$corpus" && zip -q "$OUT/${name}_seed_corpus.zip" ./*)
done
