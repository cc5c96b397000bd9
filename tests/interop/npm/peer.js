// SPDX-License-Identifier: Apache-2.0
// redlock and redis-semaphore as neighbours of holdfast:
// node peer.js redlock|redis-semaphore SOCKET KEY WITNESS try|contend [SECONDS]
const fs = require('fs');
const Redis = require('ioredis');

const [library, socket, key, witness, verb, seconds] = process.argv.slice(2);
const client = new Redis(socket);

function redlock() {
  const Redlock = require('redlock').default;
  const patient = verb === 'contend' ? 200 : 0;
  const locks = new Redlock([client], { retryCount: patient, retryDelay: 5, retryJitter: 5 });
  locks.on('error', () => {}); // Every attempt that found it busy.
  return {
    async take() { this.lock = await locks.acquire([key], 5000); },
    async give() { await this.lock.release(); },
  };
}

function semaphore() {
  const { Mutex } = require('redis-semaphore');
  // It puts `mutex:` before its names; the test shares that whole key.
  if (!key.startsWith('mutex:')) throw new Error('redis-semaphore locks keys that begin with mutex:');
  const lock = new Mutex(client, key.slice('mutex:'.length), {
    lockTimeout: 5000, acquireTimeout: verb === 'contend' ? 2000 : 50, retryInterval: 5,
  });
  return { take: () => lock.acquire(), give: () => lock.release() };
}

const peer = library === 'redlock' ? redlock() : semaphore();
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function tryOnce() {
  try {
    await peer.take();
    console.log('acquired');
  } catch (e) {
    console.log('busy');
  }
  await new Promise((done) => process.stdin.once('data', done));
  process.exit(0);
}

async function contend() {
  const out = fs.openSync(witness, 'a');
  // The layout of `sighting` in support/witness.hpp.
  const record = (kind) => {
    const bytes = Buffer.alloc(24);
    bytes.writeInt32LE(kind, 0);
    bytes.writeInt32LE(process.pid, 4);
    bytes.writeBigInt64LE(process.hrtime.bigint(), 16);
    fs.writeSync(out, bytes);
  };
  const until = Date.now() + 1000 * Number(seconds);
  let count = 0;
  while (Date.now() < until) {
    try {
      await peer.take();
    } catch (e) {
      continue;
    }
    record(1);
    await pause(1);
    record(2);
    await peer.give();
    count += 1;
    await pause(2);
  }
  console.log('done', count);
  process.exit(0);
}

(verb === 'try' ? tryOnce() : contend()).catch((e) => {
  console.log('failed', e.message);
  process.exit(1);
});
