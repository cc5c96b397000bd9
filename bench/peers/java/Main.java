// SPDX-License-Identifier: Apache-2.0
// Redisson's RLock and its fair lock; ../README.md has the protocol.
//
// All defaults: lock() without a lease of its own, which is 30 s and renewed every 10 s. connectionMinimumIdleSize is 1
// instead of 24, so that a process with one thread does not open 24 connections while others are measured.

import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.StringJoiner;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public class Main {
  private static final double[] PERCENTILES = {1, 10, 25, 50, 75, 90, 99, 99.9, 100};
  private static final BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));

  private final RedissonClient locks;
  private final boolean isFair;

  private Main(String peer, String address) {
    Config config = new Config();
    config.useSingleServer().setAddress("redis://" + address).setConnectionMinimumIdleSize(1);
    locks = Redisson.create(config);
    isFair = peer.equals("redisson-fair");
  }

  private RLock named(String name) {
    return isFair ? locks.getFairLock(name) : locks.getLock(name);
  }

  private static void ready() throws Exception {
    System.out.println("ready");
    commands.readLine();
  }

  private List<Double> pairs(String name, double seconds) {
    List<Double> took = new ArrayList<>();
    RLock lock = named(name);
    for (long end = System.nanoTime() + (long) (seconds * 1e9); System.nanoTime() < end; ) {
      long from = System.nanoTime();
      lock.lock();
      lock.unlock();
      took.add((System.nanoTime() - from) / 1e3);
    }
    return took;
  }

  private static String percentiles(List<Double> values) {
    Collections.sort(values);
    StringJoiner all = new StringJoiner(", ", "{", "}");
    for (double p : PERCENTILES) {
      int at = Math.min((int) (values.size() * p / 100), values.size() - 1);
      String name = p == (long) p ? Long.toString((long) p) : Double.toString(p);
      all.add("\"" + name + "\": " + values.get(at));
    }
    return all.toString();
  }

  private void contend(double seconds, String worker, String witness) throws Exception {
    RLock lock = named("bench:contended");
    try (FileOutputStream file = new FileOutputStream(witness, true)) {
      ready();
      int holds = 0;
      long longest = 0;
      for (long end = System.nanoTime() + (long) (seconds * 1e9); ; ++holds) {
        long from = System.nanoTime();
        lock.lock();
        long now = System.nanoTime();
        longest = Math.max(longest, now - from);
        if (now < end) file.write(worker.charAt(0));
        lock.unlock();
        if (now >= end) break;
      }
      System.out.println("{\"holds\": " + holds + ", \"longest_wait_ms\": " + longest / 1e6 + "}");
    }
  }

  public static void main(String[] arguments) throws Exception {
    Main peer = new Main(arguments[0], arguments[1]);
    double seconds = Double.parseDouble(arguments[3]);
    String worker = arguments[4];
    peer.pairs("bench:warm:" + worker, 2);  // As long as the compiler in the machine takes for the most of it.
    switch (arguments[2]) {
      case "pairs" -> {
        ready();
        List<Double> took = peer.pairs("bench:free", seconds);
        System.out.println("{\"pairs\": " + took.size() + ", \"seconds\": " + seconds + ", \"latency_us\": "
            + percentiles(took) + "}");
      }
      case "contend" -> peer.contend(seconds, worker, arguments[5]);
      case "hold" -> {
        RLock lock = peer.named("bench:held");
        lock.lock(10, TimeUnit.MINUTES);  // A lease of its own: the holder's renewals are not what is counted.
        ready();
        lock.unlock();
        System.out.println("{}");
      }
      case "wait" -> {
        ready();
        peer.named("bench:held").lock();
      }
      default -> throw new IllegalArgumentException(arguments[2]);
    }
    System.exit(0);
  }
}
