// SPDX-License-Identifier: Apache-2.0
// The Node peers, both on ioredis; ../README.md has the protocol.
//
// redlock: retryCount -1, which waits without end; 10 by default. Default: a try every 200 to 400 ms, ttl as given.
// redis-semaphore: acquireTimeout without end; 10 s by default. Default: a try every 10 ms, renewal at 0.8 of the ttl.
'use strict'
const fs = require('fs')
const Redis = require('ioredis')

const usual = 10_000
const long = 600_000

const peers = {
  redlock(redis) {
    const locks = new (require('redlock'))([redis], {retryCount: -1})
    return async (name, ttl) => {
      const held = await locks.lock(name, ttl)
      return () => held.unlock()
    }
  },
  'redis-semaphore'(redis) {
    const {Mutex} = require('redis-semaphore')
    return async (name, ttl) => {
      const mutex = new Mutex(redis, name, {lockTimeout: ttl, acquireTimeout: Infinity})
      await mutex.acquire()
      return () => mutex.release()
    }
  },
}

function told() {
  return new Promise(resolve => process.stdin.once('data', resolve))
}

function untilEnd() {
  process.stdin.resume()
  return new Promise(resolve => process.stdin.once('end', resolve))
}

async function ready() {
  console.log('ready')
  await told()
}

function answer(what) {
  console.log(JSON.stringify(what))
}

async function pairs(acquire, name, ms) {
  const took = []
  for (const end = performance.now() + ms; performance.now() < end;) {
    const from = performance.now()
    const release = await acquire(name, usual)
    await release()
    took.push((performance.now() - from) * 1000)
  }
  return took
}

function percentiles(values) {
  values.sort((a, b) => a - b)
  const at = p => values[Math.min(Math.floor(values.length * p / 100), values.length - 1)]
  return Object.fromEntries([1, 10, 25, 50, 75, 90, 99, 99.9, 100].map(p => [p, at(p)]))
}

async function contend(acquire, ms, worker, witness) {
  const file = fs.openSync(witness, 'a')
  await ready()
  let holds = 0
  let longest = 0
  for (const end = performance.now() + ms; ;) {
    const from = performance.now()
    const release = await acquire('bench:contended', usual)
    const now = performance.now()
    longest = Math.max(longest, now - from)
    if (now < end) {
      fs.writeSync(file, worker)
      ++holds
    }
    await release()
    if (now >= end) break
  }
  answer({holds, longest_wait_ms: longest})
}

async function main([peer, address, scenario, seconds, worker, witness]) {
  const [host, port] = address.split(':')
  const acquire = peers[peer](new Redis(Number(port), host))
  const ms = Number(seconds) * 1000
  await pairs(acquire, `bench:warm:${worker}`, 500)
  if (scenario === 'pairs') {
    await ready()
    const took = await pairs(acquire, 'bench:free', ms)
    answer({pairs: took.length, seconds: ms / 1000, latency_us: percentiles(took)})
  } else if (scenario === 'contend') {
    await contend(acquire, ms, worker, witness)
  } else if (scenario === 'hold') {
    const release = await acquire('bench:held', long)
    console.log('ready')
    await untilEnd()
    await release()
    answer({})
  } else if (scenario === 'wait') {
    await ready()
    await acquire('bench:held', long)
  }
}

main(process.argv.slice(2)).then(() => process.exit(0), why => {
  console.error(String(why))
  process.exit(1)
})
