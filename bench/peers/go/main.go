// SPDX-License-Identifier: Apache-2.0

// The Go peers; ../README.md has the protocol, locks.go the options.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"
)

const usual, long = 10 * time.Second, 10 * time.Minute

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func try(err error) { must(0, err) }

var commands = bufio.NewReader(os.Stdin)

func ready() {
	fmt.Println("ready")
	must(commands.ReadString('\n'))
}

func answer(what map[string]any) { try(json.NewEncoder(os.Stdout).Encode(what)) }

func pairs(acquire lock, name string, howLong time.Duration) []float64 {
	var took []float64
	for begin := time.Now(); time.Since(begin) < howLong; {
		from := time.Now()
		release := must(acquire(name, usual))
		try(release())
		took = append(took, float64(time.Since(from).Nanoseconds())/1e3)
	}
	return took
}

func percentiles(values []float64) map[string]float64 {
	slices.Sort(values)
	all := map[string]float64{}
	for _, p := range []float64{1, 10, 25, 50, 75, 90, 99, 99.9, 100} {
		at := min(int(float64(len(values))*p/100), len(values)-1)
		all[strconv.FormatFloat(p, 'g', -1, 64)] = values[at]
	}
	return all
}

func contend(acquire lock, howLong time.Duration, worker, witness string) {
	file := must(os.OpenFile(witness, os.O_APPEND|os.O_WRONLY, 0))
	ready()
	var longest time.Duration
	holds := 0
	for end := time.Now().Add(howLong); ; holds++ {
		from := time.Now()
		release := must(acquire("bench:contended", usual))
		longest = max(longest, time.Since(from))
		if time.Now().After(end) {
			try(release())
			break
		}
		must(file.WriteString(worker))
		try(release())
	}
	answer(map[string]any{"holds": holds, "longest_wait_ms": float64(longest.Microseconds()) / 1e3})
}

func main() {
	peer, address, scenario, worker, witness := os.Args[1], os.Args[2], os.Args[3], os.Args[5], os.Args[6]
	howLong := time.Duration(must(strconv.ParseFloat(os.Args[4], 64)) * float64(time.Second))
	acquire := must(peers[peer](address))
	pairs(acquire, "bench:warm:"+worker, 300*time.Millisecond)
	switch scenario {
	case "pairs":
		ready()
		took := pairs(acquire, "bench:free", howLong)
		answer(map[string]any{"pairs": len(took), "seconds": howLong.Seconds(), "latency_us": percentiles(took)})
	case "contend":
		contend(acquire, howLong, worker, witness)
	case "hold":
		release := must(acquire("bench:held", long))
		fmt.Println("ready")
		must(io.Copy(io.Discard, commands))
		try(release())
		answer(map[string]any{})
	case "wait":
		ready()
		must(acquire("bench:held", long))
	}
}
