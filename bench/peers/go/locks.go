// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"math"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// A peer: acquires the lock of this name, waits for it without end, and returns what releases it.
type lock func(name string, ttl time.Duration) (release func() error, err error)

var peers = map[string]func(address string) (lock, error){
	"redsync": useRedsync, "redislock": useRedislock, "rueidislock": useRueidislock,
}

// WithTries: 32 by default, after which it fails. Default: 50 to 250 ms between two tries.
func useRedsync(address string) (lock, error) {
	locks := redsync.New(goredis.NewPool(redis.NewClient(&redis.Options{Addr: address})))
	return func(name string, ttl time.Duration) (func() error, error) {
		mutex := locks.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt32))
		release := func() error { _, err := mutex.Unlock(); return err }
		return release, mutex.Lock()
	}, nil
}

// RetryStrategy: by default it does not wait at all. 100 ms is what the package's own example waits. A wait ends with
// the ttl unless the context has a deadline, so it has one.
func useRedislock(address string) (lock, error) {
	locks := redislock.New(redis.NewClient(&redis.Options{Addr: address}))
	how := &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)}
	return func(name string, ttl time.Duration) (func() error, error) {
		patient, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		held, err := locks.Obtain(patient, name, ttl, how)
		return func() error { return held.Release(context.Background()) }, err
	}, nil
}

// KeyMajority and NoLoopTracking as its page says for a single Redis from 7.0.5 on. KeyValidity belongs to the client,
// so ttl is not used: 5 s, extended every 2.5 s. A release has no result. TryNextAfter: after 20 ms without an answer
// the default goes to the next key. There is none, and then it waits for an invalidation that nobody sends: on a busy
// machine with the default, acquiring a free lock hung.
func useRueidislock(address string) (lock, error) {
	locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{address}}, KeyMajority: 1, NoLoopTracking: true,
		TryNextAfter: 4 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	return func(name string, _ time.Duration) (func() error, error) {
		_, cancel, err := locks.WithContext(context.Background(), name)
		return func() error { cancel(); return nil }, err
	}, nil
}
