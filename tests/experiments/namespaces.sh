# SPDX-License-Identifier: BSD-3-Clause
# Two nodes as hosts of their own: network namespaces behind a bridge. Trains there and in one
# process, and cuts a host off while it trains. Ends with 77 where the system allows no such hosts.
# usage: namespaces.sh OPTIONS.. (of train, without --steps and --save); programs are known by name
set -u
id=$$
nodes=()
clean() {
  kill "${nodes[@]}"
  for h in a b; do ip netns del "tr$h$id"; done
  ip link del "trbr$id"
} 2>/dev/null
trap clean EXIT
net=10.$((id % 200 + 20)).$((id / 200 % 200 + 1))
{ ip link add "trbr$id" type bridge && ip addr add "$net.1/24" dev "trbr$id" \
  && ip link set "trbr$id" up; } 2>/dev/null || exit 77
last=2
for h in a b; do
  { ip netns add "tr$h$id" && ip link add "tv$h$id" type veth peer name eth0 netns "tr$h$id"; } 2>/dev/null || exit 77
  ip link set "tv$h$id" master "trbr$id" up
  ip -n "tr$h$id" addr add "$net.$last/24" dev eth0
  ip -n "tr$h$id" link set eth0 up
  ip -n "tr$h$id" link set lo up
  ip netns exec "tr$h$id" "$(command -v node)" --listen "$net.$last:4242" --insecure --threads 1 >"$h.log" 2>&1 &
  nodes+=($!)
  last=$((last + 1))
done
for h in a b; do
  for _ in $(seq 500); do grep -q listening "$h.log" && break; sleep 0.02; done
done
there=(--nodes "$net.2:4242,$net.3:4242" --insecure --failure-timeout 0.5)
train "$@" --steps 10 --save one.safetensors || exit 1
train "$@" --steps 10 --save hosts.safetensors "${there[@]}" || exit 1
cmp one.safetensors hosts.safetensors || exit 1
(sleep 1; ip link set "tva$id" down) &
train "$@" --steps 1000000 "${there[@]}" 2>cut.err
[ $? -eq 1 ] && grep -q "node $net.2:4242 .* is lost: it has sent nothing for 500 ms" cut.err || { cat cut.err >&2; exit 1; }
