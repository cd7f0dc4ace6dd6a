#!/usr/bin/env bash
# What an image of the book has: packages of Debian 12, and the programs of the labs. Dockerfile and ddp_by_hand.def call
# this, and so may you, as root on a fresh Debian 12. The image may run on another processor than the one that builds it, so
# it is compiled for all of them (DDP_NATIVE=OFF).
set -euo pipefail

packages=(g++ cmake ninja-build libboost-context-dev libopenblas-dev libcli11-dev nlohmann-json3-dev zlib1g-dev
    libopenmpi-dev openmpi-bin openssh-client iproute2 dataset-fashion-mnist)
programs=(ranks data_parallel bench_all_reduce nodes bench_nodes overlap checkpoint_failover)

export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends "${packages[@]}"

cd "$(dirname "${BASH_SOURCE[0]}")/../../../.."
cmake --preset cpu -G Ninja -DBUILD_TESTING=OFF -DDDP_NATIVE=OFF
cmake --build --preset cpu --target "${programs[@]}"
