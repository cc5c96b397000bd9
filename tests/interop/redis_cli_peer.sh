#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The lock that everybody writes first, with redis-cli: SET NX PX and compare-and-delete.
# redis_cli_peer.sh SOCKET KEY WITNESS try|contend SECONDS RECORDER
socket=$1 key=$2 witness=$3 verb=$4 seconds=$5 recorder=$6
value=cli-$$

take() { [ "$(redis-cli -s "$socket" SET "$key" "$value" NX PX 5000)" = OK ]; }
give() {
  redis-cli -s "$socket" EVAL \
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0" 1 "$key" "$value" \
    >/dev/null
}

if [ "$verb" = try ]; then
  if take; then echo acquired; else echo busy; fi
  read -r _
  exit 0
fi

count=0
until=$(($(date +%s) + seconds))
while [ "$(date +%s)" -lt "$until" ]; do
  if take; then
    "$recorder" "$witness" enter $$
    "$recorder" "$witness" exit $$
    give
    count=$((count + 1))
  fi
done
echo done $count
